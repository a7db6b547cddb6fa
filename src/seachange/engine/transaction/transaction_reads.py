"""What a transaction reads: committed rows at its snapshot under its own writes, by scans and by keys.

**Invariant:** at SERIALIZABLE everything that is read, or looked for in vain, is on record before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.engine.buffer.staged import find_staged, is_hidden
from seachange.engine.constraints.unique_lookup import find_primary_key
from seachange.engine.encode.defaults import DefaultValues
from seachange.engine.replica.sizes import measure_table
from seachange.engine.transaction.seek import choose_access, rows_as_parts, select_rows
from seachange.engine.transaction.transaction_schema import TransactionSchema
from seachange.model.condition import Condition
from seachange.model.ids import DescriptorId
from seachange.model.isolation import Isolation
from seachange.model.relation import RelationName
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.rights import OnObject
from seachange.model.schema.sequences import SequenceState
from seachange.planner.known_schema import TableSize
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import entry_hash, unique_hash
from seachange.storage.plan import Overlay, plan_scan

Row = tuple[Any, ...]


class TransactionReads(TransactionSchema):
    # Numbers the relations of scans.
    _scans = 0

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
        if conditions and self.parts.seeks:
            return self._seek(table, wanted, conditions, name, whole)
        return self._scan_index(table, table.primary, wanted, name, whole)

    def _scan_index(self, table: Table, index: Index, wanted: Sequence[Column], name: str, whole: bool) -> Scan:
        parts, overlay = self.index_parts(table, index), self._overlay(index)
        return plan_scan(table, index, wanted, parts, overlay, self.parts.warehouse, name, whole)

    def _seek(
        self, table: Table, wanted: Sequence[Column], conditions: Sequence[Condition], name: str, whole: bool
    ) -> Scan:
        self._use(table)
        with self._reading():
            access = choose_access(self, table, wanted, conditions)
        if access.rows is not None:
            parts = rows_as_parts(table, wanted, access.rows)
            scan = plan_scan(table, table.primary, wanted, parts, Overlay(), self.parts.warehouse, name)
            values = zip(*access.rows, strict=True) if access.rows else [()] * len(wanted)
            found = {column.name: held for column, held in zip(wanted, values, strict=True)}
            return replace(scan, access=f"look-up: {access.reason}", found=found)
        if access.covers and access.path is not None:
            scan = self._scan_index(table, access.path.plan.index, wanted, name, whole=False)
            return replace(scan, access=f"index scan: {access.reason}, but stores all columns")
        return replace(
            self._scan_index(table, table.primary, wanted, name, whole), access=f"full scan: {access.reason}"
        )

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        if not self.parts.seeks:
            return None
        self._use(table)
        with self._reading():
            return select_rows(self, table, columns, conditions)

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

    def index_parts(self, table: Table, index: Index) -> SnapshotParts:
        self._use(table)
        return self._stored_parts(table, index)

    def _stored_parts(self, table: Table, index: Index) -> SnapshotParts:
        if self.pending.is_new(table):
            return SnapshotParts((), ())
        with self._reading():
            return self.epoch.image(table, index, self.snapshot).parts(self.snapshot)

    def _overlay(self, index: Index) -> Overlay:
        own = self.buffer.indexes.get(index.id)
        return own.overlay() if own is not None else Overlay()

    # Keys.

    def get(self, table: Table, key: Row) -> Row | None:
        if self.isolation is Isolation.SERIALIZABLE:
            encoded = self.parts.write_plan(table).primary.codec.encode(key)
            self.reads.add_keys(table.primary.id, [entry_hash(table.primary.id, encoded)])
        return self.peek(table, key)

    def peek(self, table: Table, key: Row) -> Row | None:
        """The same for a row that the conditions of a scan stand for: that it was read is on record."""
        self._use(table)
        plan = self.parts.write_plan(table)
        own = self.buffer.indexes.get(table.primary.id)
        if own is not None:
            entry = own.entries.get(plan.primary.codec.encode(key))
            if entry is not None:
                return None if entry.row is None else self._from_stored(table, own.plan.layout_id, entry.row)
            staged = find_staged(self.parts.warehouse, plan.primary, own.staged, key) if own.staged else None
            if staged is not None:
                return self._from_stored(table, staged.file.segment.layout_id, staged.row)
            if is_hidden(self.parts.warehouse, own, key):
                return None
        if self.pending.is_new(table):
            return None
        with self._reading():
            found = self.epoch.image(table, table.primary, self.snapshot).get(key, self.snapshot)
        return None if found is None else self._from_stored(table, found.layout_id, found.row)

    def _from_stored(self, table: Table, layout_id: Any, row: Row) -> Row:
        project = self.parts.read_projection(table, layout_id)
        return row if project is None else project(row)

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        if index.id == table.primary.id:
            return self.get(table, key)
        self._use(table)
        self.note_unique(table, index, key)
        with self._reading():
            primary = find_primary_key(self, self.parts.write_plan(table), index, key, self.pending.is_new(table))
        return None if primary is None else self.get(table, primary)

    # Notes.

    def note_unique(self, table: Table, index: Index, key: Row) -> None:
        """A unique key was looked for, found or not."""
        if self.isolation is Isolation.SERIALIZABLE:
            encoded = self.parts.write_plan(table).entry(index.id).unique_codec.encode(key)
            self.reads.add_keys(table.primary.id, [unique_hash(index.id, encoded)])

    def note_scan(self, table: Table, conditions: Sequence[Condition] = ()) -> None:
        """The rows of a table that meet the conditions were looked at, or looked for."""
        if self.isolation is Isolation.SERIALIZABLE:
            # What others commit is judged by rows as they are stored.
            stored = [c for c in conditions if c.column in dict(table.layout.columns)]
            self.reads.add_scan(table, stored)

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self.parts.write_plan(table).derive(rows, self.parts.duck)

    def defaults(self, column: Column, count: int) -> list[Any]:
        if column.is_row_id:
            first = self.parts.rowids.take(self.epoch.epoch, count)
            return list(range(first, first + count))
        if count and column.identity is None:
            self._check_drawn(column)
        values = DefaultValues(self.parts.duck, self.parts.entropy, self.moments, self._draw)
        return self.tape.draw(column, count, lambda count: values.of(column, count))

    def _check_drawn(self, column: Column) -> None:
        """A default draws on behalf of the role that inserts, unless it is an identity."""
        for sequence_id in column.default_sequences:
            if not self.rights.is_root and not self.allows(OnObject(sequence_id, ("USAGE", "UPDATE"))):
                sequence = self.object_by_id(sequence_id)
                name = sequence.name if sequence is not None else sequence_id
                raise errors.InsufficientPrivilege(detail=f"permission denied for sequence {name}")

    def _draw(self, sequence_id: DescriptorId, count: int) -> list[int]:
        sequence = self.object_by_id(sequence_id)
        if not isinstance(sequence, SequenceObject):
            raise errors.Bug(detail=f"a default draws from sequence {sequence_id}, which is not there")
        return self._take_values(sequence, count) if count else []

    # Sequences.

    def _take_values(self, sequence: SequenceObject, count: int) -> list[int]:
        if self.read_only:
            raise errors.ReadOnlyTransaction(command="nextval()")
        values = self.parts.sequences.take(sequence, count)
        self.client.drawn.note(sequence, values[-1])
        return values

    def _sequence(self, name: RelationName) -> SequenceObject:
        found = self.relation(name.schema, name.name)
        if not isinstance(found, SequenceObject):
            raise errors.WrongObjectType(name=name, kind="sequence")
        return found

    def next_values(self, name: RelationName, count: int) -> list[int]:
        sequence = self._sequence(name)
        self.check_access(sequence, "USAGE", "UPDATE")
        return self.tape.record(("nextval", sequence.id), count, lambda count: self._take_values(sequence, count))

    def current_value(self, name: RelationName) -> int:
        sequence = self._sequence(name)
        self.check_access(sequence, "USAGE", "SELECT")
        (value,) = self.tape.record(("currval", sequence.id), 1, lambda _: [self.client.drawn.current(sequence)])
        return int(value)

    def last_value(self) -> int:
        (value,) = self.tape.record("lastval", 1, lambda _: [self._last_drawn()])
        return int(value)

    def _last_drawn(self) -> int:
        last = self.client.drawn.last
        sequence = self.object_by_id(last) if last is not None else None
        if not isinstance(sequence, SequenceObject):
            raise errors.NotInPrerequisiteState(detail="lastval is not yet defined in this session")
        return self.client.drawn.current(sequence)

    def set_value(self, name: RelationName, value: int, called: bool) -> None:
        if self.read_only:
            raise errors.ReadOnlyTransaction(command="setval()")
        sequence = self._sequence(name)
        self.check_access(sequence, "UPDATE")

        def set_once(_: int) -> list[int]:
            self.parts.sequences.set(sequence, value, called)
            if called:
                self.client.drawn.by_sequence[sequence.id] = value
            return [value]

        self.tape.record(("setval", sequence.id), 1, set_once)

    def sequence_state(self, sequence: SequenceObject) -> SequenceState:
        return self.parts.sequences.state(sequence)

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with the values of columns that are computed."""
        derivation = self.parts.write_plan(table).derivation
        if derivation is None or not derivation.fills:
            return rows
        width = len(table.columns)
        return [row[:width] for row in derivation.derive(rows, self.parts.duck)]

    def entries(self, table: Table, index: Index, rows: Sequence[Row]) -> list[Row | None]:
        """The entry of each row in an index, as stored; None if it has none."""
        plan = self.parts.write_plan(table).entry(index.id)
        return [plan.stored(row) if plan.has_entry(row) else None for row in self.derive(table, rows)]

    def broken_checks(self, table: Table, rows: Sequence[Row]) -> list[tuple[str, Row]]:
        """The rows that do not fulfil a CHECK constraint, with its name."""
        checks = self.parts.write_plan(table).checks
        if not checks:
            return []
        return [(check.name, row) for check, row in checks.broken(rows, self.parts.duck, self.client.interrupts)]
