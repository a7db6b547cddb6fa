"""Decoded row groups: key columns for lookups, and a cache of decoded parts bounded by bytes."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seachange.model.ids import SegmentId
from seachange.storage.arrow import arrow_type
from seachange.storage.keys import Key, KeyCodec
from seachange.values.types import Kind, SqlType

Positions = npt.NDArray[np.int64]

INTEGER_KINDS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
# Types whose values compare in Python as their encodings do.
_DIRECT_KINDS = INTEGER_KINDS | {
    Kind.OID,
    Kind.TEXT,
    Kind.VARCHAR,
    Kind.CHAR,
    Kind.NAME,
    Kind.BYTEA,
    Kind.INET,
    Kind.CIDR,
    Kind.UUID,
    Kind.DATE,
    Kind.NUMERIC,
}
# Up to this many keys, one bisection per key is cheaper than one pass over all rows.
_BISECTED_KEYS_MAX = 64


class Columns:
    """Some columns of one row group, one array each."""

    __slots__ = ("arrays", "nbytes")

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        self.arrays = tuple(arrays)
        self.nbytes = sum(array.nbytes for array in self.arrays)

    def row(self, position: int) -> Key:
        return tuple([array[position].as_py() for array in self.arrays])

    def rows(self) -> list[Key]:
        return list(zip(*[array.to_pylist() for array in self.arrays], strict=True))


class KeyColumns(Columns):
    """The key columns of one row group, cast to the types in which keys are looked up."""

    __slots__ = ("_codec", "_direct", "_numbers", "_types")

    def __init__(self, arrays: Sequence[pa.Array], types: Sequence[SqlType], codec: KeyCodec) -> None:
        self._types = tuple(arrow_type(type_) for type_ in types)
        super().__init__([array.cast(t) for array, t in zip(arrays, self._types, strict=True)])
        self._codec = codec
        self._numbers: Positions | None = None
        self._direct = types[0].kind in _DIRECT_KINDS
        if len(types) == 1 and types[0].kind in INTEGER_KINDS and not self.arrays[0].null_count:
            self._numbers = self.arrays[0].to_numpy(zero_copy_only=True).astype(np.int64, copy=False)

    def __len__(self) -> int:
        return len(self.arrays[0])

    def encoded(self, position: int) -> bytes:
        return self._codec.encode(self.row(position))

    def seek(self, values: Sequence[Any], encoded: bytes) -> int:
        """The first position whose key is at or after the one that starts with `values`, which encode to `encoded`."""
        rows, low, high = range(len(self)), 0, len(self)
        if self._direct:
            # The first column alone, compared without encoding, leaves few rows; NULLs come last.
            value, nulls = values[0], len(self) - self.arrays[0].null_count
            low = nulls if value is None else bisect_left(rows, value, 0, nulls, key=self._value)
            if len(self.arrays) == 1:
                return low
            high = high if value is None else bisect_right(rows, value, low, nulls, key=self._value)
        return bisect_left(rows, encoded, low, high, key=self.encoded)

    def seek_encoded(self, encoded: bytes) -> int:
        """The first position whose encoded key is at or after `encoded`."""
        return bisect_left(range(len(self)), encoded, key=self.encoded)

    def find(self, key: Key, encoded: bytes) -> int:
        """The position of `key`, -1 if it is not present."""
        if self._numbers is not None:
            value = key[0]
            position = int(self._numbers.searchsorted(value))
            return position if position < len(self._numbers) and self._numbers[position] == value else -1
        position = self.seek(key, encoded)
        return position if position < len(self) and self.encoded(position) == encoded else -1

    def _value(self, position: int) -> Any:
        return self.arrays[0][position].as_py()

    def find_numbers(self, numbers: Positions) -> Positions:
        """The positions of integer keys."""
        stored = self._numbers
        assert stored is not None
        positions = stored.searchsorted(numbers)
        found = stored[np.minimum(positions, len(stored) - 1)] == numbers
        return np.where(found, positions, -1)

    def find_all(self, keys: Sequence[Key], encoded: Sequence[bytes]) -> Positions:
        if len(keys) <= _BISECTED_KEYS_MAX:
            return np.array([self.find(k, e) for k, e in zip(keys, encoded, strict=True)], np.int64)
        wanted = [pa.array(column, t) for column, t in zip(zip(*keys, strict=True), self._types, strict=True)]
        return match_rows(self.arrays, wanted)


def match_rows(stored: Sequence[pa.Array], wanted: Sequence[pa.Array]) -> Positions:
    """For each row of `wanted` the position of the equal row of `stored`, -1 if there is none. NULL equals NULL.

    Column by column, rows that are equal so far on both sides get the same small number; a stored row without a match
    gets -1.
    """
    stored_codes = np.zeros(len(stored[0]), np.int64)
    wanted_codes = np.zeros(len(wanted[0]), np.int64)
    for stored_column, wanted_column in zip(stored, wanted, strict=True):
        left, right = comparable(stored_column), comparable(wanted_column)
        values = pc.unique(right)
        absent = (stored_codes < 0) | ((found := _codes(left, values)) < 0)
        wanted_codes = wanted_codes * len(values) + _codes(right, values)
        distinct, wanted_codes = np.unique(wanted_codes, return_inverse=True)
        combined = stored_codes * len(values) + found
        stored_codes = distinct.searchsorted(combined)
        absent |= distinct[np.minimum(stored_codes, len(distinct) - 1)] != combined
        stored_codes[absent] = -1
    positions = np.full(len(wanted_codes), -1, np.int64)
    rows = np.flatnonzero(stored_codes >= 0)
    positions[stored_codes[rows]] = rows
    return positions[wanted_codes]


def comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column in a form whose equality is that of keys: one zero, one NaN, extension types as their storage."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([comparable(chunk) for chunk in column.chunks], type=_comparable_type(column.type))
    if isinstance(column, pa.ExtensionArray):
        return column.storage
    if pa.types.is_floating(column.type):
        zero, nan = pa.scalar(0.0, column.type), pa.scalar(math.nan, column.type)
        return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
    return column


def _comparable_type(type_: Any) -> Any:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _codes(column: pa.Array, values: pa.Array) -> Positions:
    indices = pc.fill_null(pc.index_in(column, value_set=values), -1)
    return np.asarray(indices.to_numpy(zero_copy_only=False)).astype(np.int64)


PartName = tuple[SegmentId, object]

_OFFERED_MAX = 4_096


class RowGroupCache:
    """The most recently used decoded parts of row groups, of all segments, up to `bytes_max`.

    A part that is only offered is kept from its second time on: memory that is used for one lookup and freed costs the
    allocator nothing, while keeping it causes page faults that take longer than decoding.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._parts: OrderedDict[PartName, Columns] = OrderedDict()
        self._offered: OrderedDict[PartName, None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, segment_id: SegmentId, part: object) -> Columns | None:
        with self._lock:
            found = self._parts.get((segment_id, part))
            if found is not None:
                self._parts.move_to_end((segment_id, part))
            return found

    def put(self, segment_id: SegmentId, part: object, columns: Columns) -> None:
        with self._lock:
            self._drop((segment_id, part))
            self._parts[segment_id, part] = columns
            self._bytes += columns.nbytes
            # The newest part stays even if it alone exceeds the bound: its reader needs it now.
            while self._bytes > self._bytes_max and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))

    def offer(self, segment_id: SegmentId, part: object, columns: Columns) -> None:
        name = (segment_id, part)
        with self._lock:
            first = name not in self._offered
            self._offered[name] = None
            if len(self._offered) > _OFFERED_MAX:
                self._offered.popitem(last=False)
        if not first:
            self.put(segment_id, part, columns)

    def forget(self, segment_id: SegmentId) -> None:
        with self._lock:
            for name in [name for name in self._parts if name[0] == segment_id]:
                self._drop(name)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def _drop(self, name: PartName) -> None:
        dropped = self._parts.pop(name, None)
        if dropped is not None:
            self._bytes -= dropped.nbytes
