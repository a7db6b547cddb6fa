"""Committed rows under the uncommitted writes of one transaction: what its constraints are validated over.

**Invariant:** the rows are those that a commit of the transaction right after the sequence would leave. Units of such a
source are never recorded: their names do not say what the transaction has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from seachange.model.ids import GenerationId, IndexId, LayoutId, Seq, TableId
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import IndexContents, IndexDelta, Segment
from seachange.model.states import State
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
    # The versions that the rows of other tables conform to.
    written: Mapping[TableId, Table] = field(default_factory=dict)


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
            source = self.committed.load(table, index)
            return replace(source, hidden=self.hidden(table, index)) if index.id == table.primary.id else source
        image, generation_id = self._open(table, index)
        if own is None:
            return IndexSource(table, index, generation_id, image.parts(self.committed.at))
        return IndexSource(table, index, generation_id, self._apply(image, own))

    def _open(self, table: Table, index: Index) -> tuple[IndexImage, GenerationId]:
        if table.id not in self.own.own_tables:
            return self.committed.open(table, index)
        nothing = IndexContents(index.id, self.committed.at, None, ())
        return open_image(table, index, self.committed.warehouse, nothing), NOT_ATTACHED

    def hidden(self, table: Table, index: Index) -> IndexSource | None:
        written, own = self._rows_written(table.id)
        if written is None or own is None:
            return None
        held = table.column_by_id if index.id == table.primary.id else table.entry_key(index)
        return keys_written(written, own) if set(written.primary.key) <= set(held) else None

    def replaced(self, table: Table) -> IndexSource | None:
        written, own = self._rows_written(table.id)
        if written is None or own is None or written.primary.id == table.primary.id:
            return None
        nothing = IndexContents(written.primary.id, self.committed.at, None, ())
        image = open_image(written, written.primary, self.committed.warehouse, nothing)
        before = self.as_known(replace(table, primary=written.primary))
        return IndexSource(before, before.primary, NOT_ATTACHED, self._apply(image, own))

    def as_known(self, table: Table) -> Table:
        """The table with the columns that the transaction knows as such: its rows have their values, and may not have
        those that they were computed from."""
        written = self.own.written.get(table.id)
        known = {c.id for c in written.columns if c.state is State.PUBLIC} if written is not None else set()
        columns = (replace(c, state=State.PUBLIC, conversion=None) if c.id in known else c for c in table.columns)
        return replace(table, columns=tuple(columns))

    def _rows_written(self, table_id: TableId) -> tuple[Table | None, OwnWrites | None]:
        written = self.own.written.get(table_id)
        return written, self.own.by_index.get(written.primary.id) if written is not None else None

    def _apply(self, image: IndexImage, own: OwnWrites) -> SnapshotParts:
        files, rows = Seq(self.committed.at + 1), Seq(self.committed.at + 2)
        image.apply(IndexDelta(files, (), own.segments))
        image.apply_rows(rows, own.layout_id, own.ops, own.rows)
        return image.parts(rows)


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
