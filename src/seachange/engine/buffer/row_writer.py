"""Row changes to index entries: uniqueness, not-null, and the buffer's bookkeeping, at one statement's snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seachange import errors
from seachange.engine.buffer.block_changes import BlockChanges
from seachange.engine.buffer.staged import StagedRow, find_staged, is_hidden
from seachange.engine.buffer.write_buffer import Entry, IndexBuffer, WriteBuffer
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.encode.check_rows import null_in_row, violation
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import KeyHash, Seq
from seachange.model.schema.constraint import ConstraintKind
from seachange.model.schema.descriptor import Table
from seachange.pipeline.kernels.row_names import show_key
from seachange.storage.image import StoredRow
from seachange.storage.keys import Key, constraint_hash

Row = tuple[Any, ...]
# Takes the key of an uncommitted constraint and the violation.
Record = Callable[[KeyHash, errors.Error], None]


class RowWriter:
    """Writes derived rows of one table into the buffer, as of `snapshot`."""

    def __init__(
        self,
        plan: WritePlan,
        buffer: WriteBuffer,
        parts: NodeParts,
        snapshot: Seq,
        is_new: bool,
        interrupts: SessionInterrupts,
        record: Record,
        block: BlockChanges,
    ) -> None:
        self.plan = plan
        self._block = block
        self._record = record
        self._buffer = buffer
        self._warehouse = parts.warehouse
        self._duck = parts.duck
        self._snapshot = snapshot
        # The snapshot at which the rows were read that are replaced or removed.
        self.base = snapshot
        # A table that this transaction creates has no committed rows and no image.
        self._is_new = is_new
        self._interrupts = interrupts

    def check(self, rows: Sequence[Row]) -> None:
        """Checks the CHECK constraints of each row; `check_required` checks for NULLs."""
        plan = self.plan
        if plan.checks is not None:
            plan.checks.verify(rows, self._duck, self._interrupts)
        if plan.recorded_checks is not None:
            for check, row in plan.recorded_checks.broken(rows, self._duck, self._interrupts):
                key = constraint_hash(ConstraintKind.CHECK, plan.table.id, check.id)
                self._record(key, violation(plan.table, check, row))

    def insert(self, row: Row) -> None:
        self.check_required(row)
        self.add_entries(self.plan.entries, row)

    def moves(self, old: Row, new: Row) -> bool:
        """Whether an update changes the key of any entry, or whether the row has an entry in some index."""
        return any(
            plan.has_entry(old) is not plan.has_entry(new)
            or (plan.has_entry(new) and plan.stored(old)[: plan.key_width] != plan.stored(new)[: plan.key_width])
            for plan in self.plan.entries
        )

    def update(self, old: Row, new: Row) -> None:
        """Replaces a row whose index entries keep their keys."""
        self.check_required(new)
        for plan in self.plan.entries:
            stored = plan.stored(new)
            if not plan.has_entry(new) or (stored == plan.stored(old) and not plan.is_primary):
                continue
            if plan.behaviour.writes:
                self._replace(plan, stored)
            else:
                self._remove(plan, stored)

    def delete(self, old: Row) -> None:
        self.remove_entries(self.plan.entries, old)

    def add_entries(self, plans: Sequence[EntryPlan], row: Row) -> None:
        for plan in plans:
            if plan.will_have_entry(row):
                self._add(plan, plan.stored(row))

    def remove_entries(self, plans: Sequence[EntryPlan], row: Row) -> None:
        for plan in plans:
            if plan.has_entry(row):
                self._remove(plan, plan.stored(row))

    def check_unique(self, plan: EntryPlan, stored: Row) -> None:
        unique = plan.unique_key(stored)
        if unique is not None:
            encoded = plan.codec.encode(stored[: plan.key_width])
            self._check_unique(plan, self._buffer.of(plan), unique, encoded)

    def check_required(self, row: Row) -> None:
        for position, column in self.plan.required:
            if row[position] is None and position != self.plan.rowid:
                raise errors.NotNullViolation(column=column.name, relation=self.plan.table.name)
        for position, column in self.plan.recorded_nulls:
            if row[position] is None:
                key = constraint_hash(ConstraintKind.NOT_NULL, self.plan.table.id, column.id)
                self._record(key, null_in_row(self.plan.table, column, row))

    # One entry.

    def _add(self, plan: EntryPlan, stored: Row) -> None:
        key = stored[: plan.key_width]
        encoded = plan.codec.encode(key)
        buffer = self._buffer.of(plan)
        own = buffer.entries.get(encoded)
        removed = find_staged(self._warehouse, plan, buffer.removed, key) if own is None and buffer.removed else None
        if plan.is_primary and not self.plan.has_hidden_key:
            taken = own.row is not None if own else removed is None and self._committed(plan, key) is not None
            if taken or self._find_staged(buffer, key) is not None:
                raise self._duplicate(plan, key)
        at = self.base if plan.holds_rows else self._snapshot
        existed, base = (own.existed, own.base) if own else (False, at)
        if removed is not None:
            # One version per entry: a key that is inserted again is no longer removed.
            self._buffer.delete_staged(removed.file, removed.position)
            existed, base = True, removed.file.base
        unique = plan.unique_key(stored)
        if unique is not None and plan.looks_for_duplicates:
            self._check_unique(plan, buffer, unique, encoded)
        self._buffer.put(buffer, encoded, Entry(key, stored, existed, base))

    def _replace(self, plan: EntryPlan, stored: Row) -> None:
        key = stored[: plan.key_width]
        encoded = plan.codec.encode(key)
        self._buffer.put(self._buffer.of(plan), encoded, self._over(plan, key, encoded, stored))

    def _remove(self, plan: EntryPlan, stored: Row) -> None:
        key = stored[: plan.key_width]
        encoded = plan.codec.encode(key)
        self._buffer.put(self._buffer.of(plan), encoded, self._over(plan, key, encoded, None))

    def _over(self, plan: EntryPlan, key: Key, encoded: bytes, row: Row | None) -> Entry:
        """The new version of an entry that this statement read."""
        buffer = self._buffer.of(plan)
        own = buffer.entries.get(encoded)
        if own is not None:
            return Entry(key, row, own.existed, own.base)
        staged = self._find_staged(buffer, key)
        if staged is not None:
            self._buffer.delete_staged(staged.file, staged.position)
            return Entry(key, row, existed=not staged.file.segment.fresh, base=staged.file.base)
        return Entry(key, row, existed=True, base=self.base)

    def _committed(self, plan: EntryPlan, key: Key) -> StoredRow | None:
        if self._is_new:
            return None
        return self._block.image(self.plan.table, plan.index, self._snapshot).get(key, self._snapshot)

    def _find_staged(self, buffer: IndexBuffer, key: Key) -> StagedRow | None:
        return find_staged(self._warehouse, buffer.plan, buffer.staged, key) if buffer.staged else None

    # Unique secondary keys.

    def _check_unique(self, plan: EntryPlan, buffer: IndexBuffer, unique: Key, encoded: bytes) -> None:
        if not self._is_taken(plan, buffer, unique, encoded):
            return
        if plan.checks:
            raise self._duplicate(plan, unique)
        key = constraint_hash(ConstraintKind.UNIQUE, plan.table_id, plan.index.id)
        self._record(key, self._duplicate(plan, unique))

    def _is_taken(self, plan: EntryPlan, buffer: IndexBuffer, unique: Key, encoded: bytes) -> bool:
        """Whether another row has the key, committed or in this transaction."""
        if buffer.unique.get(unique, set()) - {encoded}:
            return True
        for file in buffer.staged:
            columns = plan.columns[: plan.key_width]
            hits = self._warehouse.reader(file.segment, columns).find_prefix(unique)
            others = (position for position, key in hits if plan.codec.encode(key[: plan.key_width]) != encoded)
            if any(position not in file.deleted for position in others):
                return True
        if self._is_new:
            return False
        at = self._block.seen_at(plan.index.id, self._snapshot)
        for found in self._block.image(self.plan.table, plan.index, at).find_unique(unique, at):
            other = plan.codec.encode(found.row[: plan.key_width])
            own = buffer.entries.get(other)
            if own is None and other != encoded and not is_hidden(self._warehouse, buffer, found.row):
                return True
        return False

    def _duplicate(self, plan: EntryPlan, key: Key) -> errors.UniqueViolation:
        return duplicate_key(self.plan.table, plan, key)


def duplicate_key(table: Table, plan: EntryPlan, key: Sequence[Any]) -> errors.UniqueViolation:
    columns = [table.column_by_id[c] for c, _ in plan.columns[: len(key)]]
    return errors.UniqueViolation(constraint=plan.index.name, key=show_key(columns, key))
