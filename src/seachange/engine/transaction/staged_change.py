"""A change in several stages inside a transaction block: its hidden states are published by child transactions, and the
block goes on with a synthetic version, in which the change is done.

**Invariant:** child transactions see committed rows only. The entries of rows that the block has written, or writes
later, are in its buffer, and become deltas with its COMMIT.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.constraints.uncommitted import key_of
from seachange.engine.context.child_transactions import NextVersion
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.transaction.block_stages import follow_children
from seachange.engine.transaction.definitions import Definitions
from seachange.engine.transaction.rebase import Rebase
from seachange.model.change.elements import (
    CheckConstraint,
    ColumnNotNull,
    Element,
    ForeignKeyElement,
    descriptor_of,
)
from seachange.model.ids import DescriptorId, Seq, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, View
from seachange.model.schema.references import references_to
from seachange.model.schema.synthetic import follow_published
from seachange.model.segments import Op
from seachange.pipeline.kernels.overlay import OwnWrites
from seachange.planner.block_plan import first_stages
from seachange.planner.plan import Change, ChangePlan
from seachange.planner.stages import Phase, progress_after
from seachange.runtime.faults import reach


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """`BlockPort`."""

    state: TransactionState
    definitions: Definitions
    rebase: Rebase

    def note(self, change: Change) -> None:
        if not self.state.mode.autocommit:
            self.state.block.note(change)

    def earlier(self, ids: Collection[DescriptorId]) -> tuple[Change, ...]:
        return self.state.block.at_commit(ids)

    def published(self, id_: DescriptorId) -> Descriptor | None:
        return self.state.epoch.schemas.newest.find(id_)

    def run(
        self,
        text: str,
        plan: ChangePlan,
        taken: Collection[Change],
        first: Sequence[NextVersion],
        outcome: Sequence[NextVersion],
    ) -> None:
        # A transaction that has read nothing yet takes its snapshot after the change.
        has_begun = self.state.used or self.state.pending or not self.state.buffer.is_empty
        for before, after in outcome:
            self.definitions.declare(before, after)
        job, head = self._run_children(text, plan, first)
        tables = [(b, a) for b, a in outcome if isinstance(b, Table) and isinstance(a, Table)]
        built = {i.id: head for before, after in tables for i in after.indexes if i.id not in before.index_by_id}
        self.state.block.add(job, taken, built)
        self._declare_constraints(job)
        for before, after in tables:
            published = self.state.epoch.schema(head).by_id[before.id]
            after = follow_published(replace(after, version=before.version + 1), published)
            self.state.pending.publish(before, after, published)
            self.rebase.adopt(before, after, head)
        follow_children(self.state)
        if not has_begun:
            self.state.snapshot.look_again()
        self.definitions.fence(plan.change.fenced)

    def _declare_constraints(self, job: Job) -> None:
        """Violations by other sessions since the validation are a conflict with the COMMIT."""
        declared = self.state.declared
        for target in job.change.targets:
            key = key_of(target.element) if target.adds else None
            if key is not None and job.validated_at is not None:
                declared.changed.setdefault(key, job.validated_at)
                declared.constraints[key] = self._name(target.element)

    def _name(self, element: Element) -> str:
        """The name of a constraint, or of the column that it is about."""
        table = self.published(descriptor_of(element))
        if not isinstance(table, Table):
            return ""
        checks = {check.id: check.name for check in table.checks}
        keys = {key.id: key.name for key in table.foreign_keys}
        match element:
            case ColumnNotNull(column_id=column_id):
                return table.column_by_id[column_id].name
            case CheckConstraint(constraint_id=id_) | ForeignKeyElement(constraint_id=id_):
                return {**checks, **keys}.get(id_, "")
            case _:
                return ""

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
        )
        state.block.has_run = True
        # Sessions that wait for the job wait for this transaction.
        state.write_locks.run_job(job.id)
        own_writes = {i: own_writes_of(buffer) for i, buffer in state.buffer.indexes.items() if not buffer.is_empty}
        job = children.run(job, first, state.epoch.epoch, own_writes)
        reach("block.built")
        return job, state.epoch.catch_up()


def own_writes_of(buffer: IndexBuffer) -> OwnWrites:
    entries = buffer.entries.values()
    # Whatever an entry is over, it takes its place: a committed row, a row of a file, or none.
    ops = tuple(int(Op.TOMBSTONE if entry.row is None else Op.PUT) for entry in entries)
    rows = tuple(entry.row if entry.row is not None else buffer.tombstone_row(entry) for entry in entries)
    segments = tuple(file.segment for file in (*buffer.staged, *buffer.removed))
    return OwnWrites(buffer.plan.layout_id, segments, ops, rows)


def adopt_newest(txn: TransactionState, rebase: Rebase) -> bool:
    """Above READ COMMITTED: the block takes over the newest definition of tables that it is about to change, and reads
    the rows of its snapshot through it. Returns False where that is not possible, because the rows lie in another
    primary index by now, or because objects that the snapshot does not know are connected with the table."""
    head = txn.epoch.catch_up()
    then, now = txn.epoch.schema(txn.snapshot.seq), txn.epoch.schema(head)
    outdated = [(txn.schema.table_by_id(TableId(i)), now.by_id.get(i)) for i in txn.block.outdated]
    txn.block.outdated.clear()
    for known, newest in outdated:
        if known is None or newest is None or newest.primary.id != known.primary.id:
            return False
        if not all(map(then.find, _refers_to(newest))) or not _referring_to(newest, now) <= _referring_to(known, then):
            return False
        rebase.move([newest], head)
        txn.pending.publish(known, newest, newest)
        newer = (index.id for index in newest.indexes if index not in known.readable)
        txn.block.adopt(newest.id, head, newer)
    return bool(outdated)


def _refers_to(table: Table) -> set[DescriptorId]:
    enums = {DescriptorId(column.type.enum) for column in table.columns if column.type.enum}
    sequences = {sequence for column in table.columns for sequence in column.default_sequences}
    return {*(key.parent for key in table.foreign_keys), *enums, *sequences}


def _referring_to(table: Table, schema: SchemaVersion) -> set[tuple[DescriptorId, int]]:
    keys = {(child.id, int(key.id)) for child, key in references_to(schema.by_id.values(), table.id)}
    views = (view for view in schema.objects.values() if isinstance(view, View) and table.id in view.relation_ids)
    return keys | {(view.id, 0) for view in views}
