"""Record batches of a few rows as Arrow's IPC messages, written without Arrow objects.

Making the arrays and serializing them takes Arrow ten times as long as packing the values. The message of a schema is
the same for every batch but for its lengths: they are put into a copy of a message that Arrow has written.

**Invariant:** the bytes equal those that Arrow writes for the same rows; values that it might write differently are
left to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seachange.storage.small_arrays import Packing, Unfit, bits_of, packing_of

_ALIGNED = 8
_PADDING = tuple(bytes(-size % _ALIGNED) for size in range(_ALIGNED))
_U16, _U32, _I32, _I64 = (struct.Struct(code) for code in ("<H", "<I", "<i", "<q"))
# A continuation marker and the size of the metadata stand before it.
_PREFIX_BYTES = 8
# The places of fields in the tables of Arrow's Message.fbs.
_HEADER, _BODY_BYTES = 2, 3
_LENGTH, _NODES, _BUFFERS = 0, 1, 2
_NODE_BYTES = _BUFFER_BYTES = 16


class BatchMessage:
    """Writes the batches of one schema."""

    __slots__ = ("_body_at", "_buffers", "_buffers_at", "_head", "_length_at", "_nodes", "_nodes_at", "_packings")

    def __init__(self, schema: pa.Schema, packings: Sequence[Packing]) -> None:
        self._packings = packings
        arrays = [pa.nulls(1, field.type) for field in schema]
        message = bytes(pa.RecordBatch.from_arrays(arrays, schema=schema).serialize())
        end = _PREFIX_BYTES + _U32.unpack_from(message, 4)[0]
        self._head = message[:end]
        root = _PREFIX_BYTES + _U32.unpack_from(self._head, _PREFIX_BYTES)[0]
        batch = self._follow(self._field(root, _HEADER))
        self._body_at = self._field(root, _BODY_BYTES)
        self._length_at = self._field(batch, _LENGTH)
        nodes, buffers = (self._follow(self._field(batch, place)) for place in (_NODES, _BUFFERS))
        count, width = len(packings), sum(1 + packing.buffers for packing in packings)
        assert (_U32.unpack_from(self._head, nodes)[0], _U32.unpack_from(self._head, buffers)[0]) == (count, width)
        # Vectors begin with their length.
        self._nodes_at, self._nodes = nodes + 4, struct.Struct(f"<{2 * count}q")
        self._buffers_at, self._buffers = buffers + 4, struct.Struct(f"<{2 * width}q")

    def _field(self, table: int, place: int) -> int:
        """Where a field of a table of the flat buffer is."""
        offsets = table - _I32.unpack_from(self._head, table)[0]
        return int(table + _U16.unpack_from(self._head, offsets + 4 + 2 * place)[0])

    def _follow(self, at: int) -> int:
        return int(at + _U32.unpack_from(self._head, at)[0])

    def write(self, columns: Sequence[Sequence[Any]], rows: int) -> bytes | None:
        """None if Arrow has to do it."""
        parts: list[bytes] = []
        nodes: list[int] = []
        buffers: list[int] = []
        end = 0
        for packing, values in zip(self._packings, columns, strict=True):
            nulls = values.count(None)
            try:
                packed = packing.pack([packing.blank if v is None else v for v in values] if nulls else values)
            except Unfit:
                return None
            nodes += (rows, nulls)
            for part in (bits_of([v is not None for v in values]) if nulls else b"", *packed):
                size = len(part)
                buffers += (end, size)
                parts += (part, _PADDING[size % _ALIGNED])
                end += size + -size % _ALIGNED
        head = bytearray(self._head)
        _I64.pack_into(head, self._body_at, end)
        _I64.pack_into(head, self._length_at, rows)
        self._nodes.pack_into(head, self._nodes_at, *nodes)
        self._buffers.pack_into(head, self._buffers_at, *buffers)
        return b"".join((head, *parts))


def message_of(schema: pa.Schema) -> BatchMessage | None:
    """None if it has columns that Arrow has to write."""
    packings = [packing for field in schema if (packing := packing_of(field.type)) is not None]
    return BatchMessage(schema, packings) if len(packings) == len(schema) else None
