"""What statements write: rows, with all constraints upheld, and locks on rows.

**Invariant:** a bulk write that fails leaves nothing staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.engine.buffer.row_locks import WriteLock, claim_inserts, claim_key
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_locks import LockedRow
from seachange.engine.bulk.bulk_change import BulkChange
from seachange.engine.bulk.bulk_constraints import check_change, check_load
from seachange.engine.bulk.bulk_insert import BulkInsert
from seachange.engine.constraints.computed_values import filler_of
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.constraints.row_changes import RowChanges
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.transaction.undo import Undo
from seachange.model.locking import LockPolicy, LockStrength, TableLock
from seachange.model.schema.constraint import Action
from seachange.model.schema.descriptor import Column, Index, Table

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowWrites:
    """`WritePort`."""

    state: TransactionState
    reads: RowReads
    changes: RowChanges
    foreign_keys: ForeignKeys
    undo: Undo

    # Few rows.

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self.state.parts.write_plan(table).derive(rows, self.state.parts.duck)

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self.state.parts.write_plan(table).fill(rows, self.state.parts.duck)

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self.changes.writer(self.changes.plan(table)).check(rows)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        state, changes, each = self.state, self.changes, self.state.client.interrupts.each
        state.declared.addressed.add(table.id)
        writer = changes.writer(changes.plan(table))
        derived = changes.derive_new(writer.plan, rows)
        writer.check(derived)
        if not state.pending.is_new(table):
            write_locks = claim_inserts(writer.plan, each(derived), state.pending, changes.replaced(table))
            changes.note_taken(writer.plan, write_locks)
            state.write_locks.take(write_locks, state.snapshot.seq, table, changes=False)
        rowid = writer.plan.rowid
        for row in each(derived):
            if rowid is not None and row[rowid] is None:
                row = (*row[:rowid], state.parts.rowids.take(state.epoch.epoch), *row[rowid + 1 :])
            writer.insert(row)
        self.foreign_keys.inserted(table, rows)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self.state.declared.addressed.add(table.id)
        self.changes.update(table, old, new)
        self.foreign_keys.updated(table, old, new)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self.state.declared.addressed.add(table.id)
        self.changes.delete(table, old)
        self.foreign_keys.deleted(table, old)

    def together(self) -> AbstractContextManager[None]:
        return self.foreign_keys.together()

    # Locks on rows.

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        state = self.state
        state.declared.addressed.add(table.id)
        plan = self.changes.plan(table, TableLock.ROW_SHARE).primary
        if state.pending.is_new(table):
            return [n < most if most is not None else True for n in range(len(keys))]
        published = state.pending.published_primary(table)
        locked = replace(plan, index=published) if published.key == plan.index.key else plan
        write_locks = [[claim_key(locked, key, strength)] for key in keys]
        table_id = None if strength is LockStrength.KEY_SHARE else table.id
        with _naming_row(table):
            # Without waiting, which row is free is decided by its newest lock.
            for index in self.changes.replaced(table) if policy is not LockPolicy.SKIP else ():
                if index.key == locked.index.key:
                    earlier = [claim_key(replace(locked, index=index), key, strength) for key in keys]
                    state.write_locks.lock(earlier, policy)
            taken = state.write_locks.lock([claim for (claim,) in write_locks], policy, most, table_id)
        for index in table.coming:
            self._lock_coming(table, index, keys, write_locks, taken, policy)
        own, snapshot = state.buffer.indexes.get(plan.index.id), state.snapshot.seq
        others = [
            n for n, key in enumerate(keys) if taken[n] and (own is None or plan.codec.encode(key) not in own.entries)
        ]
        state.write_locks.declare([claim for n in others for claim in write_locks[n]], snapshot)
        state.declared.locked += [LockedRow(table, keys[n], strength, snapshot) for n in others]
        return taken

    def _lock_coming(
        self,
        table: Table,
        index: Index,
        keys: Sequence[Row],
        write_locks: Sequence[list[WriteLock]],
        taken: list[bool],
        policy: LockPolicy,
    ) -> None:
        """A transaction that comes after another primary index has replaced this one knows the rows by that alone."""
        plan = self.changes.plan(table, TableLock.ROW_SHARE).entry(index.id)
        found = {n: row for n, key in enumerate(keys) if taken[n] and (row := self.reads.peek(table, key)) is not None}
        for n, row in zip(found, self.derive(table, list(found.values())), strict=True):
            write_locks[n].append(claim_key(plan, plan.stored(row)[: plan.key_width], write_locks[n][0].strength))
        granted = self.state.write_locks.lock([write_locks[n][-1] for n in found], policy)
        for n, is_granted in zip(found, granted, strict=True):
            taken[n] = is_granted

    # Many rows.

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        return self.insert_bulk(table, lambda load, _: load.run(rows))

    def insert_bulk(self, table: Table, write: Callable[[BulkInsert, WritePlan], int], checked: bool = False) -> int:
        """`write` gives the number of rows; `checked`: it has seen to what each of them must fulfil by itself."""
        self.state.declared.addressed.add(table.id)
        plan = self.changes.plan(table)
        with self._in_bulk(table):
            load = BulkInsert(self.state, self.reads, plan)
            count = write(load, plan)
            check_load(self.state, self.reads, plan, load.segments, self.foreign_keys, checked)
            return count

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        """Not where a change of a key goes on to other rows."""
        state = self.state
        changed = {column.id for column in assigned or ()}
        filler = filler_of(state, state.parts.write_plan(table))
        if filler is not None:
            changed |= {column.id for column in filler.columns_from(assigned or ())}
        return not any(
            key.on_update not in (Action.NO_ACTION, Action.RESTRICT)
            and not changed.isdisjoint(table.index_by_id[key.parent_index].key)
            for _, key in state.schema.references_to(table)
        )

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        self.state.declared.addressed.add(table.id)
        plan = self.changes.plan(table)
        with self._in_bulk(table):
            self.changes.take_all_rows(plan)
            change = BulkChange(self.state, self.reads, plan, assigned)
            count = change.run(rows)
            check_change(self.state, self.reads, plan, change, assigned, self.foreign_keys)
            return count

    @contextmanager
    def _in_bulk(self, table: Table) -> Iterator[None]:
        mark = self.undo.mark()
        try:
            with self.state.epoch.noticing_end():
                yield
        except BaseException as problem:
            self.undo.reset(mark)
            if isinstance(problem, errors.UniqueViolation):
                self.reads.note_scan(table)
            raise


@contextmanager
def _naming_row(table: Table) -> Iterator[None]:
    """Locks know keys; the client knows the table."""
    try:
        yield
    except errors.LockRefused as problem:
        raise errors.LockRefused(f'row in relation "{table.name}"', problem.detail) from problem
