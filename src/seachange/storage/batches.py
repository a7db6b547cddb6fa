"""Inline batches: a few rows of one index as one Arrow record batch without its schema.

The first column is the op of each row; the others are the stored columns of the index in the batch's layout. A
tombstone carries its entry key and NULL elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seachange.model.ids import ColumnId
from seachange.model.types import SqlType
from seachange.storage.arrow import OP_COLUMN, schema_of
from seachange.storage.few import array_of, values_of

Row = tuple[Any, ...]

_OP_FIELD = pa.field(OP_COLUMN, pa.int8())


class BatchCodec:
    """Encodes and decodes the inline batches of one index in one layout."""

    __slots__ = ("_columns", "schema")

    def __init__(self, columns: Sequence[tuple[ColumnId, SqlType]]) -> None:
        stored = schema_of(columns)
        self.schema = pa.schema([_OP_FIELD, *stored])
        self._columns = tuple(field.type for field in stored)

    def encode(self, ops: Sequence[int], rows: Sequence[Row]) -> bytes:
        arrays = [array_of(ops, pa.int8())]
        columns = zip(*rows, strict=True)
        arrays.extend(array_of(values, type_) for values, type_ in zip(columns, self._columns, strict=True))
        return bytes(pa.RecordBatch.from_arrays(arrays, schema=self.schema).serialize())

    def decode_batch(self, payload: bytes) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(pa.py_buffer(payload), self.schema)

    def decode(self, payload: bytes) -> tuple[list[int], list[Row]]:
        batch = self.decode_batch(payload)
        columns = [values_of(column) for column in batch.columns]
        return columns[0], list(zip(*columns[1:], strict=True))
