"""Committed rows under the uncommitted writes of one transaction: what its constraints are validated over.

**Invariant:** the rows are those that a commit of the transaction right after the sequence would leave. Units of such a
source are never recorded: their names do not say what the transaction has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from seachange.model.ids import GenerationId, IndexId, LayoutId, Seq, TableId
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import IndexContents, IndexDelta, Segment
from seachange.pipeline.kernels.source import NOT_ATTACHED, IndexSource, Sources, open_image, seen_through
from seachange.storage.arrow import schema_of
from seachange.storage.image import FileSlice, IndexImage, SnapshotParts
from seachange.storage.small_arrays import array_of

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """What a transaction has written to one index: the files of bulk writes, then rows in memory, which replace rows of
    the files too, each with its operation."""

    layout_id: LayoutId
    segments: tuple[Segment, ...]
    ops: tuple[int, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class BlockWrites:
    """What a transaction block has written, and the tables that it has created or emptied, and whose keys it alone
    knows: no row of them is committed."""

    by_index: Mapping[IndexId, OwnWrites] = field(default_factory=dict)
    own_tables: Mapping[TableId, Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OverlaidSources:
    committed: Sources
    own: BlockWrites

    def tables(self) -> dict[int, Table]:
        """With the primary indexes that the transaction has written to, which may not be public yet."""
        known = {id_: self._as_written(table) for id_, table in self.committed.tables().items()}
        return known | {int(id_): table for id_, table in self.own.own_tables.items()}

    def _as_written(self, table: Table) -> Table:
        written = (index.id for index in table.coming if index.id in self.own.by_index)
        return seen_through(table, next(written, None))

    def load(self, table: Table, index: Index) -> IndexSource:
        own = self.own.by_index.get(index.id)
        if own is None and table.id not in self.own.own_tables:
            return self.committed.load(table, index)
        image, generation_id = self._open(table, index)
        if own is None:
            return IndexSource(table, index, generation_id, image.parts(self.committed.at))
        files, rows = Seq(self.committed.at + 1), Seq(self.committed.at + 2)
        image.apply(IndexDelta(files, (), own.segments))
        image.apply_rows(rows, own.layout_id, own.ops, own.rows)
        return IndexSource(table, index, generation_id, image.parts(rows))

    def _open(self, table: Table, index: Index) -> tuple[IndexImage, GenerationId]:
        if table.id not in self.own.own_tables:
            return self.committed.open(table, index)
        nothing = IndexContents(index.id, self.committed.at, None, ())
        return open_image(table, index, self.committed.warehouse, nothing), NOT_ATTACHED

    def hidden(self, table: Table) -> IndexSource | None:
        written = self.tables()[table.id].primary
        own = self.own.by_index.get(written.id) if written.key == table.primary.key else None
        return None if own is None else keys_written(table, own)


def keys_written(table: Table, own: OwnWrites) -> IndexSource:
    """The keys of what a transaction has written to the primary index."""
    nothing = np.array([], dtype=np.int64)
    files = tuple(FileSlice(segment, nothing) for segment in own.segments)
    key = [table.column_by_id[c] for c in table.primary.key]
    schema = schema_of((column.id, column.type) for column in key)
    inline: tuple[tuple[LayoutId, pa.Table], ...] = ()
    if own.rows:
        values = zip(*(row[: len(key)] for row in own.rows), strict=True)
        arrays = [array_of(column, field.type) for column, field in zip(values, schema, strict=True)]
        inline = ((own.layout_id, pa.Table.from_arrays(arrays, schema=schema)),)
    return IndexSource(table, table.primary, NOT_ATTACHED, SnapshotParts(files, inline))
