"""A change in several stages inside a transaction block: its hidden states are published by child transactions, and the
block goes on with a synthetic version, in which the change is done.

**Invariant:** child transactions see committed rows only. The entries of rows that the block has written, or writes
later, are in its buffer, and become deltas with its COMMIT.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.buffer.declarations import AddedConstraint
from seachange.engine.buffer.row_locks import claim_key
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.buffer.write_locks import LOCKED_ROWS_MAX
from seachange.engine.constraints.uncommitted import key_of
from seachange.engine.context.child_transactions import NextVersion
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.transaction.block_stages import follow_children, note_children
from seachange.engine.transaction.change_history import plan_change
from seachange.engine.transaction.definitions import Definitions
from seachange.engine.transaction.own_rows import has_own_rows
from seachange.engine.transaction.past_rows import copy_drawn, copy_rows, note_changed, rows_to_copy, show_copy
from seachange.engine.transaction.rebase import Rebase
from seachange.model.change.elements import (
    CheckConstraint,
    ColumnDefault,
    ColumnElement,
    ColumnNotNull,
    ConvertedColumn,
    Element,
    EnumLabel,
    ForeignKeyElement,
    UniqueIndex,
    descriptor_of,
)
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, DescriptorId, IndexId, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, EnumType, View
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.references import Reference, references_to
from seachange.model.schema.synthetic import follow_published
from seachange.model.schema.temporary import is_temporary
from seachange.model.segments import Op
from seachange.pipeline.kernels.overlay import BlockWrites, OwnWrites
from seachange.planner.block_plan import first_stages, has_children, keep_targets, touched_by
from seachange.planner.plan import Change, ChangePlan
from seachange.planner.stages import Phase, progress_after
from seachange.planner.strategy import Cost
from seachange.runtime.faults import reach


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """`BlockPort`."""

    state: TransactionState
    definitions: Definitions
    rebase: Rebase

    def note(self, text: str, change: Change) -> None:
        if not self.state.mode.autocommit:
            self.state.block.note(change)
            self.state.changed.update(dict.fromkeys(touched_by(change), text))

    def record(self, text: str, cost: Cost, refills: bool = False) -> None:
        self.state.block.note_planned(plan_change(self.state, text, cost, refills))

    def may_be_filled(self, table_ids: Collection[TableId]) -> bool:
        if self.state.isolation is not Isolation.READ_COMMITTED:
            return False
        return not all(has_own_rows(self.state, id_) or self._is_temporary(id_) for id_ in table_ids)

    def _is_temporary(self, table_id: TableId) -> bool:
        table = self.state.schema.table_by_id(table_id)
        return table is not None and is_temporary(table.schema)

    def earlier(self, ids: Collection[DescriptorId]) -> tuple[Change, ...]:
        return tuple(map(self._without_unknown, self.state.block.at_commit(ids)))

    def _without_unknown(self, change: Change) -> Change:
        known = [n for n, target in enumerate(change.targets) if not self._is_left_to_commit(target.element)]
        return keep_targets(change, known)

    def _is_left_to_commit(self, element: Element) -> bool:
        """Other sessions cannot draw default values from sequences of the block. Nor may they store a default value in
        a new column with a foreign key that only the block knows, which counts on NULLs in their rows."""
        if not isinstance(element, ColumnDefault):
            return False
        table, published = self.state.schema.table_by_id(element.table_id), self.published(element.table_id)
        known = {key.id for key in published.foreign_keys} if isinstance(published, Table) else set()
        own = [key.columns for key in table.foreign_keys if key.id not in known] if table is not None else []
        return not all(map(self.published, element.sequence_ids)) or any(element.column_id in key for key in own)

    def published(self, id_: DescriptorId) -> Descriptor | None:
        return self.state.epoch.schemas.newest.find(id_)

    def is_unseen(self, table_id: DescriptorId) -> bool:
        return self.state.pending.is_own(table_id)

    def can_rewrite(self, ids: Collection[DescriptorId]) -> bool:
        state = self.state
        tables = [(state.schema.table_by_id(TableId(i)), self.published(i)) for i in ids]
        known = [(seen, now) for seen, now in tables if seen is not None]
        return all(isinstance(now, Table) and self._is_as_published(seen, now) for seen, now in known)

    def _is_as_published(self, seen: Table, now: Table) -> bool:
        """Whether others know the rows, and the foreign keys by their primary key, as the block does."""
        keeps_snapshot = self.state.isolation is not Isolation.READ_COMMITTED
        if keeps_snapshot and self.state.pending.changes(seen) and self.state.block.has_savepoint:
            # After ROLLBACK TO, the rows of the snapshot could not be read with a version of its own.
            return False
        known, newest = self.state.schema.references_to(seen), self.state.epoch.schemas.newest.by_id.values()
        is_same = seen.primary == now.primary and not now.coming
        return is_same and _by_key(known, seen) == _by_key(references_to(newest, now), now)

    def is_stored(self, table_id: TableId, column_id: ColumnId) -> bool:
        return self.state.block.has_stored(table_id, column_id)

    def run(
        self,
        text: str,
        plan: ChangePlan,
        first: Sequence[NextVersion],
        outcome: Sequence[Sequence[Descriptor | None]],
    ) -> None:
        # A transaction that has read nothing yet takes its snapshot after the change.
        has_begun = self.state.has_begun
        keeps_snapshot = has_begun and self.state.isolation is not Isolation.READ_COMMITTED
        for versions in outcome:
            self.definitions.declare(versions[0], versions[-1])
        # The rows of the snapshot are not in a primary index that is built now.
        own = self._own_writes()
        found = [rows_to_copy(self.state, versions, own) for versions in outcome] if keeps_snapshot else []
        to_copy = {rows.table.primary.id: rows for rows in found if rows is not None}
        copies = {id_: copy_rows(self.state, rows) for id_, rows in to_copy.items() if not rows.drawn}
        job, head = self._run_children(text, plan, first)
        tables = [[table for table in versions if isinstance(table, Table)] for versions in outcome]
        ends = [(versions[0], versions[-1]) for versions in tables if versions]
        new = (i.id for before, after in ends for i in after.indexes if i.id not in before.index_by_id)
        built = {index_id: head for index_id in new if index_id not in to_copy}
        self.state.block.add(job, built, has_children(plan))
        self._declare_constraints(job)
        for created in (versions[-1] for versions in outcome if versions[0] is None):
            published = self.published(created.id) if created is not None else None
            if created is not None and published is not None:
                self.state.pending.publish(None, replace(created, version=published.version + 1), published)
        for before, after in ((versions[0], versions[-1]) for versions in outcome):
            if isinstance(before, EnumType | SequenceObject):
                self.state.pending.publish(before, after)
        changes = []
        for before, *passed, after in filter(None, tables):
            published = self.state.epoch.schema(head).by_id[before.id]
            after = follow_published(replace(after, version=before.version + 1), published)
            self.state.pending.publish(before, after, published)
            rows = to_copy.get(after.primary.id)
            if rows is not None:
                copied = copies.get(after.primary.id) or copy_drawn(self.state, rows, after, head)
                show_copy(self.state, copied, after, head)
            changes.append((before, (*passed, after)))
        self.rebase.adopt(changes, head)
        for _, (*_, after) in changes:
            if after.primary.id in to_copy:
                note_changed(self.state, after)
        if plan.sequel is not None:
            for _, (*_, after) in changes:
                self._lock_again(after, head)
        follow_children(self.state)
        if not has_begun:
            self.state.snapshot.look_again()
        self.definitions.fence(plan.change.fenced)

    def _own_writes(self) -> dict[IndexId, OwnWrites]:
        buffers = self.state.buffer.indexes.items()
        return {index_id: own_writes_of(buffer) for index_id, buffer in buffers if not buffer.is_empty}

    def _lock_again(self, table: Table, head: Seq) -> None:
        """Other sessions know the rows by another primary index by now, which is public: what the block has written or
        locked before is locked by its keys there. One that another session has locked meanwhile is a conflict."""
        published, plan = self.published(table.id), self.state.parts.write_plan(table).primary
        if isinstance(published, Table):
            self.rebase.follow_locks(published, head)
        written = self.state.buffer.of(plan).entries.values()
        locked = [row for row in self.state.declared.locked if row.table.id == table.id]
        locks = [claim_key(plan, row.key, row.strength) for row in locked]
        locks += [claim_key(plan, entry.key, LockStrength.UPDATE) for entry in written]
        if len(locks) <= LOCKED_ROWS_MAX:
            self.state.write_locks.lock(locks, LockPolicy.SKIP)

    def _declare_constraints(self, job: Job) -> None:
        """Violations by other sessions since the validation, or the conversion, are a conflict with the COMMIT."""
        declared = self.state.declared
        for target in job.change.targets:
            key = key_of(target.element) if target.adds else None
            is_computed = isinstance(target.element, ColumnElement | ConvertedColumn)
            since = job.converted_at if is_computed else job.validated_at
            if key is not None and since is not None:
                declared.changed.setdefault(key, since)
                is_transient = target.goal is Goal.TRANSIENT
                lost = self._lost_values(job.change) if is_transient else ""
                message = lost or self._describe_violation(target.element)
                declared.constraints[key] = AddedConstraint(target.element, message, is_transient)

    def _lost_values(self, change: Change) -> str:
        """The enum values that a constraint keeps out of rows until they are dropped."""
        labels = [t.element for t in change.targets if not t.adds and isinstance(t.element, EnumLabel)]
        types = {label.type_id: self.published(label.type_id) for label in labels}
        lost = [f'"{label.label}" of type {found.name}' for label in labels if (found := types[label.type_id])]
        return f"value {', '.join(lost)} is needed for" if lost else ""

    def _describe_violation(self, element: Element) -> str:
        table = self.published(descriptor_of(element))
        if not isinstance(table, Table):
            return ""
        checks = {check.id: check.name for check in table.checks}
        keys = {key.id: key.name for key in table.foreign_keys}
        match element:
            case ConvertedColumn(column_id=column_id) | ColumnElement(column_id=column_id):
                return f'column "{table.column_by_id[column_id].name}" has no value for'
            case ColumnNotNull(column_id=column_id):
                return f'NOT NULL of column "{table.column_by_id[column_id].name}" is violated by'
            case CheckConstraint(constraint_id=id_) | ForeignKeyElement(constraint_id=id_):
                name = {**checks, **keys}.get(id_, "")
            case UniqueIndex(index_id=id_):
                name = table.index_by_id[id_].name
            case _:
                name = ""
        return f'constraint "{name}" is violated by'

    def _run_children(self, text: str, plan: ChangePlan, first: Sequence[NextVersion]) -> tuple[Job, Seq]:
        state, children = self.state, self.state.statement.context.children
        if children is None:
            raise errors.Bug(detail="a change in several stages without a session")
        job = Job(
            state.parts.catalog.new_job_id(),
            text,
            plan.change,
            progress_after(plan.graph, first_stages(plan)),
            Phase.STATEMENT,
            drain_ms=children.drain_ms,
            settings=children.job_settings,
            owner=children.owner,
            sequel=plan.sequel,
        )
        known = touched_by(plan.change)
        unseen = {id_: table for id_, table in state.pending.own_tables().items() if id_ not in known}
        state.block.has_run = True
        # Sessions that wait for the job wait for this transaction.
        state.write_locks.run_job(job.id)
        begun = job
        try:
            written = {TableId(id_): fit.table for id_, fit in state.buffer.fits.items()}
            own = BlockWrites(self._own_writes(), unseen, written)
            job = children.run(job, first, state.epoch.epoch, own)
        finally:
            # Also if it was reverted. A job of two changes has published versions of what only the first one changes.
            note_children(state, [begun, job])
        reach("block.built")
        return job, state.epoch.catch_up()


def _by_key(references: Iterable[Reference], table: Table) -> set[tuple[DescriptorId, ForeignKey]]:
    """The foreign keys that refer to the primary key."""
    return {(child.id, key) for child, key in references if key.parent_index == table.primary.id}


def own_writes_of(buffer: IndexBuffer) -> OwnWrites:
    entries = buffer.entries.values()
    # Whatever an entry is over, it takes its place: a committed row, a row of a file, or none.
    ops = tuple(int(Op.TOMBSTONE if entry.row is None else Op.PUT) for entry in entries)
    rows = tuple(entry.row if entry.row is not None else buffer.tombstone_row(entry) for entry in entries)
    segments = tuple(file.segment for file in (*buffer.staged, *buffer.removed))
    return OwnWrites(buffer.plan.layout_id, segments, ops, rows)


def adopt_newest(txn: TransactionState, rebase: Rebase) -> bool:
    """The block takes over the newest definition of tables that it is about to change, and of which it has changed
    labels at most. Above READ COMMITTED it reads the rows of its snapshot through it. Returns False where that is not
    possible, because the rows lie in another primary index by now, or because objects that the snapshot does not know
    are connected with the table."""
    keeps_snapshot = txn.isolation is not Isolation.READ_COMMITTED
    head = txn.epoch.catch_up() if keeps_snapshot else txn.snapshot.seq
    now = txn.epoch.schema(head)
    outdated = [(txn.schema.table_by_id(TableId(i)), now.by_id.get(i)) for i in txn.block.outdated]
    txn.block.outdated.clear()
    for known, newest in outdated:
        if known is None or newest is None or (keeps_snapshot and not _is_readable(txn, known, newest, now)):
            return False
        if not txn.pending.changes(known):
            rebase.move([newest], head)
            txn.pending.publish(known, newest, newest)
        elif not rebase.relabel(head):
            return False
        if keeps_snapshot:
            newer = (index.id for index in newest.indexes if index not in known.readable)
            txn.block.adopt(newest.id, head, newer)
    return bool(outdated)


def _is_readable(txn: TransactionState, known: Table, newest: Table, now: SchemaVersion) -> bool:
    """Whether the rows of the snapshot can be read with another version of their table."""
    then = txn.epoch.schema(txn.snapshot.seq)
    is_same = newest.primary.id == known.primary.id and all(map(then.find, _refers_to(newest)))
    return is_same and _referring_to(newest, now) <= _referring_to(known, then)


def _refers_to(table: Table) -> set[DescriptorId]:
    enums = {DescriptorId(column.type.enum) for column in table.columns if column.type.enum}
    sequences = {sequence for column in table.columns for sequence in column.default_sequences}
    return {*(key.parent for key in table.foreign_keys), *enums, *sequences}


def _referring_to(table: Table, schema: SchemaVersion) -> set[tuple[DescriptorId, int]]:
    keys = {(child.id, int(key.id)) for child, key in references_to(schema.by_id.values(), table)}
    views = (view for view in schema.objects.values() if isinstance(view, View) and table.id in view.relation_ids)
    return keys | {(view.id, 0) for view in views}
