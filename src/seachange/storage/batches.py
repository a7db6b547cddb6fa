"""Inline batches: a few rows of one index as one Arrow record batch without its schema.

The first column is the op of each row; the others are the stored columns of the index in the batch's layout. A
tombstone has its entry key and NULL elsewhere.

**Invariant:** no row is read from a batch whose checksum is not the recorded one. A batch of a release without
checksums is read as it is; compaction moves its rows to files, which have one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import xxhash

from seachange import errors
from seachange.model.ids import ColumnId, IndexId, LayoutId
from seachange.model.segments import InlineBatch
from seachange.storage.arrow import OP_COLUMN, schema_of
from seachange.storage.batch_message import BatchMessage, message_of
from seachange.storage.small_arrays import FEW, array_of, values_of
from seachange.values.types import SqlType

Row = tuple[Any, ...]

_OP_FIELD = pa.field(OP_COLUMN, pa.int8())


# The part of the checksummed data before the rows: index, layout and number of rows.
_HEADER = struct.Struct("<qqq")


def seal_batch(index_id: IndexId, layout_id: LayoutId, rows: int, payload: bytes) -> InlineBatch:
    return InlineBatch(index_id, layout_id, rows, payload, _checksum(index_id, layout_id, rows, payload))


def is_damaged(batch: InlineBatch) -> bool:
    if batch.checksum is None:
        return False
    return batch.checksum != _checksum(batch.index_id, batch.layout_id, batch.rows, batch.payload)


def _checksum(index_id: int, layout_id: int, rows: int, payload: bytes) -> int:
    """Signed, as catalogs store integers; never 0, which stands for no checksum."""
    digest = xxhash.xxh3_64(_HEADER.pack(index_id, layout_id, rows))
    digest.update(payload)
    return (digest.intdigest() - (1 << 63)) or 1


class BatchCodec:
    """Encodes and decodes the inline batches of one index in one layout."""

    __slots__ = ("_columns", "_message", "_writes_itself", "schema")

    def __init__(self, columns: Sequence[tuple[ColumnId, SqlType]]) -> None:
        stored = schema_of(columns)
        self.schema = pa.schema([_OP_FIELD, *stored])
        self._columns = tuple(field.type for field in stored)
        # Made with the first batch: most codecs only read.
        self._message: BatchMessage | None = None
        self._writes_itself = True

    def encode(self, ops: Sequence[int], rows: Sequence[Row]) -> bytes:
        """At least one row."""
        if self._writes_itself and len(rows) <= FEW:
            if self._message is None:
                self._message = message_of(self.schema)
                self._writes_itself = self._message is not None
            written = self._message and self._message.write((ops, *zip(*rows, strict=True)), len(rows))
            if written:
                return written
        arrays = [array_of(ops, pa.int8())]
        columns = zip(*rows, strict=True)
        arrays.extend(array_of(values, type_) for values, type_ in zip(columns, self._columns, strict=True))
        return bytes(pa.RecordBatch.from_arrays(arrays, schema=self.schema).serialize())

    def decode(self, payload: bytes) -> tuple[list[int], list[Row]]:
        batch = pa.ipc.read_record_batch(pa.py_buffer(payload), self.schema)
        columns = [values_of(column) for column in batch.columns]
        return columns[0], list(zip(*columns[1:], strict=True))


def read_batch(
    batch: InlineBatch, table: str, codec_of: Callable[[LayoutId], BatchCodec]
) -> tuple[list[int], list[Row]]:
    """The ops and rows of a batch from a catalog; `table` is the name for error messages."""
    # Checked first, since an unknown layout is damage too.
    if is_damaged(batch):
        raise errors.InlineRowsDamaged(table=table, detail="their checksum differs from the recorded one")
    codec = codec_of(batch.layout_id)
    try:
        return codec.decode(batch.payload)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise errors.InlineRowsDamaged(table=table, detail=str(problem)) from problem
