"""Rows into the buffer of a transaction: their locks, the values that are computed for them, and their checks.

What refers to the rows, and what they refer to, is not looked at here (`foreign_key.py`).

**Invariant:** a write remembers the snapshot at which it was computed; its keys are locked before it is buffered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.buffer.row_locks import WriteLock, claim_deletes, claim_updates
from seachange.engine.buffer.row_writer import RowWriter
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_locks import LOCKED_ROWS_MAX
from seachange.engine.constraints.computed_values import record_failures
from seachange.engine.constraints.uncommitted import recording
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.reads.table_uses import TableUses
from seachange.model.isolation import Isolation
from seachange.model.locking import TableLock
from seachange.model.schema.descriptor import Index, Table

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowChanges:
    state: TransactionState
    uses: TableUses

    # Before a write.

    def plan(self, table: Table, mode: TableLock = TableLock.ROW_EXCLUSIVE) -> WritePlan:
        state = self.state
        state.snapshot.check_writable()
        if not state.pending.changes(table):
            # A statement that has to go back to a limit must find the rows fit for the version of then.
            if state.shapes.limits and not state.buffer.writes_to(table.id):
                self._check_limits(table)
            state.buffer.begin(table, state.snapshot.seq)
        self.uses.use(table, mode)
        return state.parts.write_plan(table)

    def _check_limits(self, table: Table) -> None:
        shapes = self.state.shapes
        own = shapes.limits.get(table.id)
        if own is not None and self.state.snapshot.seq > own.seq:
            if own.columns is None or shapes.used_of(table.id, own.columns):
                raise errors.StatementHeld(seq=own.seq)
            shapes.forget_lost(table)

    def writer(self, plan: WritePlan) -> RowWriter:
        state = self.state
        is_new = state.pending.is_new(plan.table)
        interrupts, record = state.client.interrupts, recording(state)
        snapshot, block = state.snapshot.seq, state.block
        return RowWriter(plan, state.buffer, state.parts, snapshot, is_new, interrupts, record, block)

    def replaced(self, table: Table) -> list[Index]:
        """Primary indexes by which transactions of this node may have locked rows of the table."""
        return self.state.epoch.schemas.replaced_primaries(table)

    def take(self, plan: WritePlan, write_locks: Sequence[WriteLock], changes: bool = True) -> None:
        """`changes`: existing rows are changed."""
        state = self.state
        if changes and len(write_locks) > LOCKED_ROWS_MAX:
            self.take_all_rows(plan)
        state.write_locks.take(write_locks, state.snapshot.seq, plan.table, changes)

    def note_taken(self, plan: WritePlan, write_locks: Sequence[WriteLock]) -> None:
        """That a key is taken is something read, even if the statement fails for it."""
        if self.state.isolation is Isolation.SERIALIZABLE:
            self.state.read_set.add_keys(plan.primary.index.id, [claim.lock for claim in write_locks])

    def take_all_rows(self, plan: WritePlan) -> None:
        """Many rows are changed. A statement in autocommit is run again after a conflict, and only then makes others
        wait."""
        state = self.state
        if state.pending.is_new(plan.table) or (state.mode.autocommit and not state.write_locks.is_shared):
            return
        # Once the lock is held only inserts change the table, so that the statement is run again at most once. One
        # snapshot is kept at the other levels: there the commit compares row by row.
        is_new = state.write_locks.take_rows(plan.table.id)
        written = state.epoch.conflicts.newest_touching([plan.primary.index.id])
        if is_new and state.isolation is Isolation.READ_COMMITTED and written > state.snapshot.seq:
            raise errors.RowChanged(seq=written)

    # Values.

    def derive_new(self, plan: WritePlan, rows: Sequence[Row]) -> Sequence[Row]:
        failed: Failures = {}
        derived = plan.derive(self._drawn(plan, rows), self.state.parts.duck, failed)
        record_failures(self.state, plan.table, failed)
        return derived

    def _drawn(self, plan: WritePlan, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with values for columns that are yet to come, where they have none so far."""
        for position, column in plan.drawn:
            lacking = sum(row[position] is None for row in rows)
            values = iter(self.state.sequences.defaults(column, lacking) if lacking else ())
            rows = [
                (*row[:position], next(values), *row[position + 1 :]) if row[position] is None else row for row in rows
            ]
        return rows

    # Writes.

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self.writer(self.plan(table)).check(rows)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        state, each = self.state, self.state.client.interrupts.each
        writer = self.writer(self.plan(table))
        old, new = writer.plan.derive(old, state.parts.duck), self.derive_new(writer.plan, new)
        writer.check(new)
        if not state.pending.is_new(table):
            write_locks = claim_updates(writer.plan, state.buffer, each(old), new, state.pending, self.replaced(table))
            self.note_taken(writer.plan, write_locks)
            self.take(writer.plan, write_locks)
        # Keys are freed before they are taken, so that a statement may shift or swap them.
        moved = [(o, n) for o, n in each(zip(old, new, strict=True)) if writer.moves(o, n)]
        for before, after in each(zip(old, new, strict=True)):
            if not writer.moves(before, after):
                writer.update(before, after)
        for before, _ in each(moved):
            writer.delete(before)
        for _, after in each(moved):
            writer.insert(after)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        state, each = self.state, self.state.client.interrupts.each
        writer = self.writer(self.plan(table))
        old = writer.plan.derive(old, state.parts.duck)
        if not state.pending.is_new(table):
            write_locks = claim_deletes(writer.plan, state.buffer, each(old), state.pending, self.replaced(table))
            self.take(writer.plan, write_locks)
        for row in each(old):
            writer.delete(row)
