"""What a transaction reads: committed rows at its snapshot under its own writes, by scans and by keys.

**Invariant:** at SERIALIZABLE everything that is read, or looked for in vain, is on record before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.engine.buffer.staged import find_staged, is_hidden
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.reads.key_range import key_ranges
from seachange.engine.reads.seek import choose_access, rows_as_parts, select_rows
from seachange.engine.reads.table_uses import TableUses
from seachange.engine.reads.unique_lookup import find_primary_key
from seachange.model.condition import Among, Condition
from seachange.model.isolation import Isolation
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.pipeline.compaction.migration import notes_reads
from seachange.planner.known_schema import TableSize
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import EntryRanges, entry_hash, unique_hash
from seachange.storage.plan import Overlay, plan_scan

Row = tuple[Any, ...]


class RowReads:
    """`ReadPort`."""

    def __init__(self, state: TransactionState, uses: TableUses) -> None:
        self._state = state
        self._uses = uses
        # Numbers the relations of scans.
        self._scans = 0

    # Scans.

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        shown = [replace(c, name=table.label(c)) for c in table.columns] if hidden else table.visible_columns
        wanted = [c for c in shown if columns is None or c.name.lower() in columns]
        # Files are sorted by the key: a condition on its first column skips most of a file, one on others little.
        first = table.column_by_id[table.entry_key(table.primary)[0]].name.lower()
        self.note_scan(table, conditions)
        self._scans += 1
        name, whole = f"s{self._scans}", sought is not None and first not in sought
        if conditions and self._state.parts.seeks:
            return self._seek(table, wanted, conditions, name, whole)
        return self._scan_index(table, table.primary, wanted, name, whole)

    def _scan_index(
        self,
        table: Table,
        index: Index,
        wanted: Sequence[Column],
        name: str,
        whole: bool,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        self._uses.use(table)
        entry = self._state.parts.write_plan(table).entry(index.id)
        parts = self._stored_parts(table, index, key_ranges(table, entry, conditions) if wanted else None)
        overlay = self._overlay(index)
        if notes_reads(table) and any(f.segment.layout_id != table.layout.id for f in parts.files):
            self._state.parts.layouts_met.add(index.id)
        scan = plan_scan(table, index, wanted, parts, overlay, self._state.parts.warehouse, name, whole)
        every = len(parts.files) + parts.skipped
        return replace(scan, access=f"scan of {len(parts.files)} of {every} files") if parts.skipped else scan

    def _seek(
        self, table: Table, wanted: Sequence[Column], conditions: Sequence[Condition], name: str, whole: bool
    ) -> Scan:
        self._uses.use(table)
        with self._state.snapshot.reading():
            access = choose_access(self._state, self, table, wanted, conditions)
        if access.rows is not None:
            parts = rows_as_parts(table, wanted, access.rows)
            scan = plan_scan(table, table.primary, wanted, parts, Overlay(), self._state.parts.warehouse, name)
            values = zip(*access.rows, strict=True) if access.rows else [()] * len(wanted)
            found = {column.name: held for column, held in zip(wanted, values, strict=True)}
            return replace(scan, access=f"look-up: {access.reason}", found=found)
        if access.covers and access.path is not None:
            scan = self._scan_index(table, access.path.plan.index, wanted, name, False, conditions)
            return replace(
                scan, access=f"index {scan.access.removeprefix('full ')}: {access.reason}, but stores all columns"
            )
        scan = self._scan_index(table, table.primary, wanted, name, whole, conditions)
        return replace(scan, access=f"{scan.access}: {access.reason}")

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        if not self._state.parts.seeks:
            return None
        self._uses.use(table)
        with self._state.snapshot.reading():
            return select_rows(self._state, self, table, columns, conditions)

    def describe(self, table: Table) -> ScanFacts:
        parts, own = self.index_parts(table, table.primary), self._overlay(table.primary)
        touched = [len(file.superseded) for file in parts.files if len(file.superseded)]
        return ScanFacts(
            untouched=len(parts.files) - len(touched),
            touched=len(touched),
            superseded=sum(touched),
            inline_rows=sum(rows.num_rows for _, rows in parts.inline),
            own_rows=(own.rows.num_rows if own.rows is not None else 0) + sum(f.segment.rows for f in own.files),
        )

    def size(self, table: Table) -> TableSize:
        return measure_table(self._stored_parts(table, table.primary), self._overlay(table.primary))

    def all_parts(self, table: Table) -> SnapshotParts:
        """What is stored of the rows, with those that the transaction itself has removed or replaced."""
        parts, own = self._stored_parts(table, table.primary), self._overlay(table.primary)
        layout_id = table.layout.id if own.layout_id is None else own.layout_id
        inline = parts.inline if own.rows is None else (*parts.inline, (layout_id, own.rows))
        return SnapshotParts((*parts.files, *own.files), inline)

    def index_parts(self, table: Table, index: Index) -> SnapshotParts:
        self._uses.use(table)
        return self._stored_parts(table, index)

    def _stored_parts(self, table: Table, index: Index, within: EntryRanges | None = None) -> SnapshotParts:
        if self._state.pending.is_new(table):
            return SnapshotParts((), ())
        at = self._state.block.seen_at(index.id, self._state.snapshot.seq)
        with self._state.snapshot.reading():
            return self._state.block.image(table, index, at).parts(at, within)

    def _overlay(self, index: Index) -> Overlay:
        own = self._state.buffer.indexes.get(index.id)
        return own.overlay() if own is not None else Overlay()

    # Keys.

    def get(self, table: Table, key: Row) -> Row | None:
        if self._state.isolation is Isolation.SERIALIZABLE and table.primary.id in self._state.block.state.past:
            self.note_scan(table, [Among(c, (value,)) for c, value in zip(table.primary.key, key, strict=True)])
        elif self._state.isolation is Isolation.SERIALIZABLE:
            encoded = self._state.parts.write_plan(table).primary.codec.encode(key)
            self._state.read_set.add_keys(table.primary.id, [entry_hash(table.primary.id, encoded)])
        return self.peek(table, key)

    def peek(self, table: Table, key: Row) -> Row | None:
        """The same for a row that the conditions of a scan stand for: that it was read is on record."""
        self._uses.use(table)
        plan = self._state.parts.write_plan(table)
        own = self._state.buffer.indexes.get(table.primary.id)
        if own is not None:
            entry = own.entries.get(plan.primary.codec.encode(key))
            if entry is not None:
                return None if entry.row is None else self._from_stored(table, own.plan.layout_id, entry.row)
            staged = find_staged(self._state.parts.warehouse, plan.primary, own.staged, key) if own.staged else None
            if staged is not None:
                return self._from_stored(table, staged.file.segment.layout_id, staged.row)
            if is_hidden(self._state.parts.warehouse, own, key):
                return None
        if self._state.pending.is_new(table):
            return None
        with self._state.snapshot.reading():
            found = self._state.block.image(table, table.primary, self._state.snapshot.seq).get(
                key, self._state.snapshot.seq
            )
        return None if found is None else self._from_stored(table, found.layout_id, found.row)

    def _from_stored(self, table: Table, layout_id: Any, row: Row) -> Row:
        project = self._state.parts.read_projection(table, layout_id)
        return row if project is None else project(row)

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        if index.id == table.primary.id:
            return self.get(table, key)
        self._uses.use(table)
        self.note_unique(table, index, key)
        with self._state.snapshot.reading():
            primary = find_primary_key(
                self._state, self._state.parts.write_plan(table), index, key, self._state.pending.is_new(table)
            )
        row = None if primary is None else self.get(table, primary)
        if primary is not None and not self._state.block.is_readable(index.id, self._state.snapshot.seq):
            self._check_visible(table, index, key, row)
        return row

    def _check_visible(self, table: Table, index: Index, key: Row, row: Row | None) -> None:
        """The index is newer than the snapshot: the row that has the key may be too."""
        entry = self._state.parts.write_plan(table).entry(index.id)
        stored = self._state.parts.write_plan(table).derive([row], self._state.parts.duck) if row is not None else []
        if not any(entry.has_entry(each) and entry.unique_key(entry.stored(each)) == key for each in stored):
            raise errors.SerializationFailure(detail=f"a row with a key of {index.name} is newer than the snapshot")

    # Notes.

    def note_unique(self, table: Table, index: Index, key: Row) -> None:
        """A unique key was looked for, found or not."""
        if self._state.isolation is Isolation.SERIALIZABLE:
            plan = self._state.parts.write_plan(table).entry(index.id)
            # A foreign key may refer to the rows by a primary index that is under construction.
            hash_key, codec = (entry_hash, plan.codec) if plan.holds_rows else (unique_hash, plan.unique_codec)
            self._state.read_set.add_keys(table.primary.id, [hash_key(index.id, codec.encode(key))])

    def note_scan(self, table: Table, conditions: Sequence[Condition] = ()) -> None:
        """The rows of a table that meet the conditions were looked at, or looked for."""
        if self._state.isolation is Isolation.SERIALIZABLE:
            # What others commit is judged by rows as they are stored. They know those that this transaction has
            # rewritten by the primary index of the snapshot.
            if table.primary.id in self._state.block.state.past:
                table = self._state.epoch.schema(self._state.snapshot.seq).by_id[table.id]
            stored = [c for c in conditions if c.column in dict(table.layout.columns)]
            self._state.read_set.add_scan(table, stored)


def measure_table(parts: SnapshotParts, own: Overlay) -> TableSize:
    """The estimated size of a table, for planning, without reading rows. Rows that the transaction itself removed or
    replaced still count, so 0 rows means that the table is empty."""
    files = (*parts.files, *own.files)
    inline = [rows for _, rows in parts.inline] + ([own.rows] if own.rows is not None else [])
    return TableSize(
        rows=sum(f.segment.rows - len(f.superseded) for f in files) + sum(rows.num_rows for rows in inline),
        bytes=sum(f.segment.size_bytes for f in files) + sum(rows.nbytes for rows in inline),
        files=len(files),
    )
