"""Encodes many rows as DataRow messages, column by column: Arrow encodes a whole column and joins the columns.

**Invariant:** the bytes equal those of the per-value encoder; values that Arrow might write differently are left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from seachange.server.values import BINARY_FORM, TEXT_FORM, encoder
from seachange.sql.port.result import ResultColumn, Row
from seachange.values.types import Kind

Values = Sequence[Any]
# Returns None for values that the per-value encoder must handle.
ColumnEncoder = Callable[[Values], pa.Array | None]

_HEAD: Final = np.dtype([("kind", "S1"), ("size", ">i4"), ("count", ">i2"), ("length", ">i4")])
_NULL_LENGTH: Final = -1
# Between these PostgreSQL and Arrow write the same digits, without an exponent.
_PLAIN_MIN, _PLAIN_MAX = 1e-4, 1e10


def frame_rows(rows: Sequence[Row], columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    """A message for each row, of at least one column."""
    encoded = [_encode(*each) for each in zip(columns, formats, zip(*rows, strict=True), strict=True)]
    lengths = [np.asarray(pc.fill_null(pc.binary_length(array), _NULL_LENGTH)) for array in encoded]
    head = np.empty(len(rows), _HEAD)
    head["kind"], head["count"], head["length"] = b"D", len(columns), lengths[0]
    # The size itself, the number of columns, and the length of each value.
    head["size"] = 6 + sum(4 + np.maximum(each, 0) for each in lengths)
    parts = [_fixed(head), encoded[0]]
    for array, length in zip(encoded[1:], lengths[1:], strict=True):
        parts += (_fixed(length.astype(">i4")), array)
    joined = pc.binary_join_element_wise(*parts, b"", null_handling="replace", null_replacement=b"")
    return bytes(joined.buffers()[2].to_pybytes())


def _encode(column: ResultColumn, form: int, values: Values) -> pa.Array:
    at_once = _AT_ONCE.get((column.type.kind, form)) if column.type is not None else None
    if at_once is not None:
        try:
            encoded = at_once(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            # Some values are of another class; the per-value encoder handles them.
            encoded = None
        if encoded is not None:
            return encoded
    encode = encoder(column, form)
    return pa.array([None if value is None else encode(value) for value in values], pa.binary())


def _fixed(items: NDArray[Any]) -> pa.Array:
    """Items of one size as a variable-length binary array."""
    width = items.dtype.itemsize
    ends = np.arange(0, (len(items) + 1) * width, width, dtype=np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(items), [None, pa.py_buffer(ends), pa.py_buffer(items.tobytes())]
    )


def _binary(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.binary())


def _integer_text(values: Values) -> pa.Array:
    return _binary(pa.array(values, pa.int64()).cast(pa.string()))


def _text(values: Values) -> pa.Array:
    return _binary(pa.array(values, pa.string()))


def _boolean_text(values: Values) -> pa.Array:
    return pc.if_else(pa.array(values, pa.bool_()), pa.scalar(b"t", pa.binary()), pa.scalar(b"f", pa.binary()))


def _double_text(values: Values) -> pa.Array | None:
    array = pa.array(values, pa.float64())
    sizes = np.abs(array.fill_null(0).to_numpy(zero_copy_only=False))
    if not np.all((sizes == 0) | ((sizes >= _PLAIN_MIN) & (sizes < _PLAIN_MAX))):
        return None
    return _binary(array.cast(pa.string()))


class _Number:
    """Fixed-width numbers in big-endian order."""

    def __init__(self, arrow: pa.DataType, wire: str) -> None:
        self._arrow = arrow
        self._wire = wire

    def __call__(self, values: Values) -> pa.Array:
        array = pa.array(values, self._arrow)
        encoded = _fixed(array.fill_null(0).to_numpy(zero_copy_only=False).astype(self._wire))
        return encoded if not array.null_count else pc.if_else(array.is_valid(), encoded, pa.scalar(None, pa.binary()))


_AT_ONCE: Final[Mapping[tuple[Kind, int], ColumnEncoder]] = {
    (Kind.SMALLINT, TEXT_FORM): _integer_text,
    (Kind.INTEGER, TEXT_FORM): _integer_text,
    (Kind.BIGINT, TEXT_FORM): _integer_text,
    (Kind.OID, TEXT_FORM): _integer_text,
    (Kind.DOUBLE, TEXT_FORM): _double_text,
    (Kind.BOOLEAN, TEXT_FORM): _boolean_text,
    (Kind.TEXT, TEXT_FORM): _text,
    (Kind.VARCHAR, TEXT_FORM): _text,
    (Kind.NAME, TEXT_FORM): _text,
    (Kind.SMALLINT, BINARY_FORM): _Number(pa.int16(), ">i2"),
    (Kind.INTEGER, BINARY_FORM): _Number(pa.int32(), ">i4"),
    (Kind.BIGINT, BINARY_FORM): _Number(pa.int64(), ">i8"),
    (Kind.DOUBLE, BINARY_FORM): _Number(pa.float64(), ">f8"),
    (Kind.TEXT, BINARY_FORM): _text,
    (Kind.VARCHAR, BINARY_FORM): _text,
    (Kind.NAME, BINARY_FORM): _text,
}
