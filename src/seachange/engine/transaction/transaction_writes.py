"""What a transaction writes: rows and descriptors, into buffers that it alone sees, with the constraints upheld.

**Invariant:** a write remembers the snapshot at which it was computed; a statement that fails leaves none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.changer.job import Job, job_change
from seachange.engine.buffer.declarations import DeclarationsMark
from seachange.engine.buffer.row_locks import WriteLock, claim_deletes, claim_inserts, claim_key, claim_updates
from seachange.engine.buffer.row_writer import RowWriter
from seachange.engine.buffer.segment_staging import abandon
from seachange.engine.buffer.write_locks import LOCKED_ROWS_MAX, LockedRow, StepMark, WriteLocksMark
from seachange.engine.bulk.bulk_change import BulkChange
from seachange.engine.bulk.bulk_constraints import check_change, check_load
from seachange.engine.bulk.bulk_insert import BulkInsert
from seachange.engine.constraints.computed_values import filler_of, record_failures
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.context.deferral import Deferral
from seachange.engine.context.statement_context import BLOCK, TransactionMode
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.database_use import hold_alone
from seachange.engine.transaction.own_rows import run_own
from seachange.engine.transaction.transaction_reads import TransactionReads
from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId, JobStatus
from seachange.model.locking import AdvisoryCall, LockPolicy, LockStrength, TableLock
from seachange.model.schema.access import DEFAULT_ROLE, PUBLIC_ROLE
from seachange.model.schema.constraint import Action
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import Database, Descriptor, EnumType, Role, View, is_relabelled
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.segments import Segment
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Progress
from seachange.storage.keys import change_hash, name_hash, role_hash

Row = tuple[Any, ...]
_ALWAYS_THERE = frozenset({DEFAULT_ROLE, PUBLIC_ROLE})
Mark = tuple[int, int, int, Deferral, int]


@dataclass(frozen=True, slots=True)
class SavepointMark:
    """What there was at a savepoint: the writes, and beside them locks, what was declared, and the tables used."""

    writes: Mark
    write_locks: WriteLocksMark
    declared: DeclarationsMark
    used: frozenset[DescriptorId]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a transaction had done before a statement of a block."""

    mark: Mark
    write_locks: StepMark
    used: dict[DescriptorId, int]
    declared: DeclarationsMark


class TransactionWrites(TransactionReads):
    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        isolation: Isolation,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
        mode: TransactionMode = BLOCK,
    ) -> None:
        super().__init__(parts, epoch, isolation, as_of, client, may_write, mode)
        self._foreign_keys = ForeignKeys(self)

    def mark(self) -> Mark:
        deferral = self._foreign_keys.deferral
        return self.buffer.mark(), self.pending.mark(), len(self.declared.shares), deferral, self.rights.mark()

    def checkpoint(self) -> Checkpoint:
        """To go back to before the statements of a block that are run again."""
        return Checkpoint(self.mark(), self.write_locks.mark(), dict(self.used), self.declared.mark())

    def undo_to(self, to: Checkpoint, step: StepMark) -> None:
        """Undoes all statements since; `step` is how many keys were locked when the first of them had ended. Nothing of
        them is left, neither the versions that they were planned with nor their locks."""
        self.reset(to.mark)
        self.buffer.forget_empty()
        self.used.clear()
        self.used.update(to.used)
        self.declared.undo_to(to.declared)
        self.write_locks.go_back(to.write_locks, step)
        self.is_adapted = False

    def reset(self, mark: Mark) -> None:
        """Undoes everything since `mark`: a statement that failed leaves none of its writes."""
        self.declared.reset(shares=mark[2])
        self.pending.reset(mark[1])
        self._foreign_keys.deferral = mark[3]
        self.rights.reset(mark[4])
        self._abandon(self.buffer.reset(mark[0]))

    def savepoint(self) -> SavepointMark:
        return SavepointMark(self.mark(), self.write_locks.begin_scope(), self.declared.mark(), frozenset(self.used))

    def back_to(self, mark: SavepointMark) -> None:
        """Undoes everything since a savepoint, and releases the locks that were taken since. Tables that were first
        used since are as if they had not been: others may have changed them without the lock."""
        self.reset(mark.writes)
        self.declared.undo_to(mark.declared)
        self.write_locks.back_to(mark.write_locks)
        for id_ in self.used.keys() - mark.used:
            del self.used[id_]
            self.shapes.forget(id_)

    # Descriptors.

    def publish(self, before: Descriptor | None, after: Descriptor | None) -> None:
        self._check_writable()
        if isinstance(before, Table):
            self._use(before)
        self._declare(before, after)
        self.pending.publish(before, after)
        if isinstance(before, Table) and isinstance(after, Table):
            plan = self.parts.write_plan(after)
            self.buffer.rebase(plan, [entry.index.id for entry in plan.entries], self.snapshot)

    def revive(self, dropped: Table, after: Table) -> None:
        self._check_writable()
        self._refuse_lost_values(dropped)
        self._declare(None, after)
        self.pending.revive(dropped, after)

    def _refuse_lost_values(self, dropped: Table) -> None:
        """Its rows may have values of enum types that were not searched for in them when they were dropped."""
        if not dropped.enum_places:
            return
        drops = {found.id: found.dropped_at for found in self.parts.catalog.dropped()}
        # One that this transaction has dropped was as it is now until then.
        then = self.epoch.schema(Seq(drops[dropped.id] - 1) if dropped.id in drops else self.snapshot).objects
        for column in (dropped.columns[place] for place in dropped.enum_places):
            type_id = DescriptorId(column.type.enum)
            lost = _held(then.get(type_id)) - _held(self.object_by_id(type_id))
            if lost:
                raise errors.FeatureNotSupported(
                    feature=f"UNDROP TABLE {dropped.name}, whose column {column.name} may have value {min(lost)}, "
                    "which was dropped since,",
                    instead="ALTER TYPE ... ADD VALUE brings the value back.",
                )

    def _declare(self, before: Descriptor | None, after: Descriptor | None) -> None:
        """What the change conflicts by: the table, and every name that a relation or type is given or loses by it."""
        for role in _roles_named(after) - _roles_named(before):
            self.declared.shares.setdefault(role_hash(role), self.snapshot)
        if isinstance(before, Role) and (after is None or after.name != before.name):
            self.declared.changed.setdefault(role_hash(before.name), self.snapshot)
        if before is not None and after is not None and is_relabelled(before, after):
            # Beside any other change, which is then made of what it finds. As in PostgreSQL, GRANT waits for no lock.
            if isinstance(after, Table) and replace(after.access, privileges=before.access.privileges) != before.access:
                self.await_table_locks(after)
            return
        names = _names(after) ^ _names(before)
        table = after or before
        keys = {name_hash(*name) for name in names} | ({change_hash(table.id)} if table is not None else set())
        if not self.is_autocommit:
            # It may stay open for long: others wait for its end, and are not surprised by it.
            write_locks = [WriteLock(key, LockStrength.UPDATE) for key in sorted(keys - self.declared.changed.keys())]
            self.write_locks.lock(write_locks, LockPolicy.WAIT)
            self.write_locks.check(write_locks, self.snapshot)
        for key in keys:
            self.declared.changed.setdefault(key, self.snapshot)

    def rely_on(self, objects: Iterable[Descriptor]) -> None:
        for descriptor in objects:
            if not self.pending.changed(descriptor.id):
                self.declared.relied[descriptor.id] = descriptor.version
                # A concurrent change of it was planned without knowing of this one.
                self.declared.shares.setdefault(change_hash(descriptor.id), self.snapshot)

    def check_newest(self, ids: Iterable[DescriptorId]) -> None:
        if not self.is_autocommit and self.isolation is not Isolation.READ_COMMITTED:
            # It is not run again: whether there is a conflict is found at its commit.
            return
        head = self.epoch.catch_up()
        then, now = self.epoch.schema(self.snapshot), self.epoch.schema(head)
        for id_ in ids:
            if self.pending.changed(id_):
                continue
            known, newest = (schema.by_id.get(id_) or schema.objects.get(id_) for schema in (then, now))
            if known is not None and (newest is None or newest.version != known.version):
                raise errors.RowChanged(seq=head)

    def hold_alone(self, database: Database) -> None:
        # A process that was killed uses nothing; the catalog learns it from its expiry.
        self.parts.catalog.expire_nodes()
        hold_alone(database, self.write_locks)

    def launch(self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool) -> JobId:
        """The rest of a plan becomes a job when this transaction commits."""
        job = self.mode.queued
        if job is None:
            job = Job(self.parts.catalog.new_job_id(), statement, plan.change, progress, phase, passed)
        job = replace(
            job,
            change=plan.change,
            sequel=plan.sequel,
            progress=progress,
            phase=phase,
            passed=passed,
            status=JobStatus.RUNNING,
            queued=None,
            waiting="",
            drain_ms=self.mode.drain_ms,
            settings=self.mode.job_settings,
        )
        # It may begin with a wait, and publish nothing yet.
        for id_ in job.descriptors:
            self.declared.changed.setdefault(change_hash(id_), self.snapshot)
        self.declared.jobs.append(job_change(job, f"began: {statement}"))
        return job.id

    def is_empty(self, index_id: IndexId) -> bool:
        table = next(t for t in self.tables() if index_id in t.index_by_id)
        own = self.buffer.indexes.get(index_id)
        if own is not None and (own.staged or own.removed or any(e.row is not None for e in own.entries.values())):
            return False
        if self.pending.is_new(table):
            return True
        return self.epoch.image(table, table.index_by_id[index_id], self.snapshot).is_empty(self.snapshot)

    def rely_on_empty(self, index_id: IndexId) -> None:
        table = next(t for t in self.tables() if index_id in t.index_by_id)
        if not self.pending.is_new(table):
            self.declared.relied_empty[index_id] = (table, self.snapshot)

    def is_own(self, table_id: TableId) -> bool:
        return self.pending.is_own(table_id)

    def run_own(self, op: BackfillIndexes | Validate) -> None:
        run_own(self, op, self._foreign_keys)

    def fence(self, table_ids: Collection[TableId]) -> None:
        self.declared.fenced |= set(table_ids)

    # Rows.

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        return self.client.advisory.run(call, key, self.write_locks)

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        self.declared.addressed.add(table.id)
        plan = self._write_plan(table, TableLock.ROW_SHARE).primary
        if self.pending.is_new(table):
            return [n < most if most is not None else True for n in range(len(keys))]
        write_locks = [[claim_key(plan, key, strength)] for key in keys]
        table_id = None if strength is LockStrength.KEY_SHARE else table.id
        with _naming_row(table):
            taken = self.write_locks.lock([claim for (claim,) in write_locks], policy, most, table_id)
        if table.next_primary is not None:
            self._lock_coming(table, table.next_primary, keys, write_locks, taken, policy)
        own = self.buffer.indexes.get(plan.index.id)
        others = [
            n for n, key in enumerate(keys) if taken[n] and (own is None or plan.codec.encode(key) not in own.entries)
        ]
        self.write_locks.declare([claim for n in others for claim in write_locks[n]], self.snapshot)
        self.declared.locked += [LockedRow(table, keys[n], strength, self.snapshot) for n in others]
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
        plan = self._write_plan(table, TableLock.ROW_SHARE).entry(index.id)
        found = {n: row for n, key in enumerate(keys) if taken[n] and (row := self.peek(table, key)) is not None}
        for n, row in zip(found, self.derive(table, list(found.values())), strict=True):
            write_locks[n].append(claim_key(plan, plan.stored(row)[: plan.key_width], write_locks[n][0].strength))
        granted = self.write_locks.lock([write_locks[n][-1] for n in found], policy)
        for n, is_granted in zip(found, granted, strict=True):
            taken[n] = is_granted

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self._writer(self._write_plan(table)).check(rows)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self.declared.addressed.add(table.id)
        writer = self._writer(self._write_plan(table))
        derived = self._derive_new(writer.plan, rows)
        writer.check(derived)
        if not self.pending.is_new(table):
            self._take(writer.plan, claim_inserts(writer.plan, self.each(derived)), changes=False)
        rowid = writer.plan.rowid
        for row in self.each(derived):
            if rowid is not None and row[rowid] is None:
                row = (*row[:rowid], self.parts.rowids.take(self.epoch.epoch), *row[rowid + 1 :])
            writer.insert(row)
        self._foreign_keys.inserted(table, rows)

    def _take(self, plan: WritePlan, write_locks: Sequence[WriteLock], changes: bool = True) -> None:
        if self.isolation is Isolation.SERIALIZABLE:
            # That a key is taken is something read, even if the statement fails for it.
            self.reads.add_keys(plan.primary.index.id, [claim.lock for claim in write_locks])
        self.write_locks.take(write_locks, self.snapshot, plan.table, changes)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self.declared.addressed.add(table.id)
        self.write_update(table, old, new)
        self._foreign_keys.updated(table, old, new)

    def write_update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Without looking at what refers to the rows or what they refer to."""
        writer = self._writer(self._write_plan(table))
        old, new = self.derive(table, old), self._derive_new(writer.plan, new)
        writer.check(new)
        if not self.pending.is_new(table):
            write_locks = claim_updates(writer.plan, self.buffer, self.each(old), new)
            if len(write_locks) > LOCKED_ROWS_MAX:
                self._take_rows(writer.plan)
            self._take(writer.plan, write_locks)
        # Keys are freed before they are taken, so that a statement may shift or swap them.
        moved = [(o, n) for o, n in self.each(zip(old, new, strict=True)) if writer.moves(o, n)]
        for before, after in self.each(zip(old, new, strict=True)):
            if not writer.moves(before, after):
                writer.update(before, after)
        for before, _ in self.each(moved):
            writer.delete(before)
        for _, after in self.each(moved):
            writer.insert(after)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self.declared.addressed.add(table.id)
        self.write_delete(table, old)
        self._foreign_keys.deleted(table, old)

    def write_delete(self, table: Table, old: Sequence[Row]) -> None:
        writer = self._writer(self._write_plan(table))
        old = self.derive(table, old)
        if not self.pending.is_new(table):
            write_locks = claim_deletes(writer.plan, self.buffer, self.each(old))
            if len(write_locks) > LOCKED_ROWS_MAX:
                self._take_rows(writer.plan)
            self.write_locks.take(write_locks, self.snapshot, table)
        for row in self.each(old):
            writer.delete(row)

    def together(self) -> AbstractContextManager[None]:
        return self._foreign_keys.together()

    # Many rows.

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        return self.insert_bulk(table, lambda load, _: load.run(rows))

    def insert_bulk(self, table: Table, write: Callable[[BulkInsert, WritePlan], int], checked: bool = False) -> int:
        """`write` gives the number of rows; `checked`: it has seen to what each of them must fulfil by itself."""
        self.declared.addressed.add(table.id)
        plan = self._write_plan(table)
        with self._in_bulk(table):
            load = BulkInsert(self, plan)
            count = write(load, plan)
            check_load(self, plan, load.segments, self._foreign_keys, checked)
            return count

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        """Not where the transaction has written to the table already, or a change of a key goes on to other rows."""
        if any(
            index.id in self.buffer.indexes and not self.buffer.indexes[index.id].is_empty for index in table.maintained
        ):
            return False
        changed = {column.id for column in assigned or ()}
        filler = filler_of(self, self.parts.write_plan(table))
        if filler is not None:
            changed |= {column.id for column in filler.columns_from(assigned or ())}
        return not any(
            key.on_update not in (Action.NO_ACTION, Action.RESTRICT)
            and not changed.isdisjoint(table.index_by_id[key.parent_index].key)
            for _, key in self.references_to(table)
        )

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        self.declared.addressed.add(table.id)
        plan = self._write_plan(table)
        with self._in_bulk(table):
            self._take_rows(plan)
            change = BulkChange(self, plan, assigned)
            count = change.run(rows)
            check_change(self, plan, change, assigned, self._foreign_keys)
            return count

    def _take_rows(self, plan: WritePlan) -> None:
        """Many rows are changed. A statement in autocommit is run again after a conflict, and only then makes others
        wait."""
        if self.pending.is_new(plan.table) or (self.is_autocommit and not self.write_locks.is_shared):
            return
        # Once the lock is held only inserts change the table, so that the statement is run again at most once. One
        # snapshot is kept at the other levels: there the commit compares row by row.
        is_new = self.write_locks.take_rows(plan.table.id)
        written = self.epoch.conflicts.newest_touching([plan.primary.index.id])
        if is_new and self.isolation is Isolation.READ_COMMITTED and written > self.snapshot:
            raise errors.RowChanged(seq=written)

    @contextmanager
    def _in_bulk(self, table: Table) -> Iterator[None]:
        mark = self.mark()
        try:
            with self.epoch.noticing_end():
                yield
        except BaseException as problem:
            self.reset(mark)
            if isinstance(problem, errors.UniqueViolation):
                self.note_scan(table)
            raise

    def _derive_new(self, plan: WritePlan, rows: Sequence[Row]) -> Sequence[Row]:
        failed: Failures = {}
        derived = plan.derive(self._drawn(plan, rows), self.parts.duck, failed)
        record_failures(self, plan.table, failed)
        return derived

    def _drawn(self, plan: WritePlan, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with values for columns that are yet to come, where they have none so far."""
        for position, column in plan.drawn:
            lacking = sum(row[position] is None for row in rows)
            values = iter(self.defaults(column, lacking) if lacking else ())
            rows = [
                (*row[:position], next(values), *row[position + 1 :]) if row[position] is None else row for row in rows
            ]
        return rows

    def _write_plan(self, table: Table, mode: TableLock = TableLock.ROW_EXCLUSIVE) -> WritePlan:
        self._check_writable()
        if not self.pending.changes(table):
            self._begin_writing(table)
        self._use(table, mode)
        return self.parts.write_plan(table)

    def _begin_writing(self, table: Table) -> None:
        """A statement that has to go back to a limit must find the rows fit for the version of then."""
        limits = self.shapes.limits
        if limits and not self.buffer.writes_to(table.id):
            self._check_limits(table)
        self.buffer.begin(table, self.snapshot)

    def _check_limits(self, table: Table) -> None:
        own = self.shapes.limits.get(table.id)
        if own is not None and self.snapshot > own.seq:
            if own.columns is None or self.shapes.used_of(table.id, own.columns):
                raise errors.StatementHeld(seq=own.seq)
            self.shapes.forget_lost(table)

    def _writer(self, plan: WritePlan) -> RowWriter:
        is_new = self.pending.is_new(plan.table)
        return RowWriter(plan, self.buffer, self.epoch, self.parts, self.snapshot, is_new, self.client.interrupts)

    def _abandon(self, segments: Iterable[Segment]) -> None:
        abandon(self, [segment.id for segment in segments])


@contextmanager
def _naming_row(table: Table) -> Iterator[None]:
    """Locks know keys; the client knows the table."""
    try:
        yield
    except errors.LockRefused as problem:
        raise errors.LockRefused(f'row in relation "{table.name}"', problem.detail) from problem


def _names(descriptor: Descriptor | None) -> set[tuple[str, str, str]]:
    """The names of relations, and of types: a relation has a type of its name. Those of other objects are looked at by
    the catalog alone."""
    if not isinstance(descriptor, Table | SequenceObject | View | EnumType):
        return set()
    place = (descriptor.database, descriptor.schema)
    indexes = descriptor.indexes if isinstance(descriptor, Table) else ()
    return {(*place, descriptor.name), *((*place, index.name) for index in indexes)}


def _roles_named(descriptor: Descriptor | None) -> set[str]:
    """The roles that must not be gone when it is published."""
    if descriptor is None:
        return set()
    if isinstance(descriptor, Role):
        return {*descriptor.member_of, *(default.role for default in descriptor.defaults)} - _ALWAYS_THERE
    return {descriptor.access.owner, *(held.role for held in descriptor.access.privileges)} - _ALWAYS_THERE


def _held(type_: Descriptor | None) -> set[str]:
    return {value.held for value in type_.values} if isinstance(type_, EnumType) else set()
