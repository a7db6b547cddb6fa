"""The ports of a statement that changes the schema to its transaction, which the engine implements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.jobs import JobId, JobRecord, JobRequest
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.planner.plan import Change, ChangePlan
from seachange.planner.stages import Phase, Progress
from seachange.planner.strategy import Cost


class DefinitionPort(Protocol):
    """Changes of descriptors."""

    def publish(self, before: Descriptor | None, after: Descriptor | None) -> None:
        """Makes a descriptor change part of the transaction: creates (before None), replaces, drops (after None)."""

    def revive(self, dropped: Descriptor, after: Descriptor) -> None:
        """The same for a dropped object that comes back, a table with its rows."""

    def rely_on(self, objects: Iterable[Descriptor]) -> None:
        """The commit is refused if one of them is gone by then."""

    def check_newest(self, ids: Collection[DescriptorId]) -> None:
        """Raises RowChanged if one of the descriptors has a newer version than that of the snapshot."""

    def is_empty(self, table: Table) -> bool: ...

    def rely_on_empty(self, table: Table) -> None:
        """The commit is refused if the table, which was found empty, has rows by then."""

    def fence(self, table_ids: Collection[TableId]) -> None:
        """After this commit, no transaction commits that planned with an older version of these tables."""

    def allocate_ids(self, count: int) -> range: ...

    @property
    def release(self) -> int:
        """Of the rules by which changes are planned."""

    def salt(self, count: int) -> bytes:
        """Random bytes."""

    def has_fixed_password(self, role: str) -> bool:
        """Whether the environment of the server sets the role's password."""


class OwnRowsPort(Protocol):
    """Backfills and validations of rows that only this transaction sees."""

    def is_own(self, table_id: TableId) -> bool:
        """Whether the transaction has created or emptied the table, or relies on having found it empty, so that all of
        its rows are the transaction's own."""

    def run_own(self, op: BackfillIndexes | Validate) -> None:
        """Builds indexes of such a table, or validates a constraint of it, over its rows."""


class BlockPort(Protocol):
    """Changes in several stages inside a transaction block."""

    def note(self, text: str, change: Change) -> None:
        """A change that the commit publishes as it is, with the text of its statement."""

    def record(self, text: str, cost: Cost, refills: bool = False) -> None:
        """The history of changes names the statement, if the commit of the transaction publishes its change."""

    def may_be_filled(self, table_ids: Collection[TableId]) -> bool:
        """Whether other sessions can insert rows into one of these tables, which are empty, before the COMMIT, and the
        block does not keep the snapshot in which it found them empty."""

    def earlier(self, ids: Collection[DescriptorId]) -> Sequence[Change]:
        """What changes of this block do to these tables that no job has taken along."""

    def published(self, id_: DescriptorId) -> Descriptor | None:
        """The newest version that other sessions know."""

    def is_unseen(self, table_id: DescriptorId) -> bool:
        """Whether the block has created or emptied the table: other sessions know neither its rows nor its keys."""

    def can_rewrite(self, ids: Collection[DescriptorId]) -> bool:
        """Whether rows of these tables can be moved to another index while the block is open: it may not go back to
        where it knows of the one before."""

    def is_stored(self, table_id: TableId, column_id: ColumnId) -> bool:
        """Whether every row has a value of a hidden column that the block has added, where other sessions read it."""

    def run(
        self,
        text: str,
        plan: ChangePlan,
        first: Sequence[tuple[Descriptor | None, Descriptor]],
        outcome: Sequence[Sequence[Descriptor | None]],
    ) -> None:
        """Runs a change: its hidden states are published at once, `first` before all others. `outcome` are the
        versions of each descriptor through which the rows of the block go, from the one that it has now, None if it
        is new, to the one that its COMMIT publishes."""


class JobPort(Protocol):
    """Jobs: those of other statements, and that of this one."""

    @property
    def asks_for_job(self) -> bool:
        """Whether a change is to have a job even if nothing is left for it to do."""

    @property
    def queue_place(self) -> JobId | None:
        """The job whose statement this is, if it was queued."""

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        """Cancels, pauses or resumes a job at once; a rollback does not undo it."""

    def unfinished_jobs(self) -> tuple[JobRecord, ...]: ...

    def can_change(self, ids: Collection[DescriptorId]) -> bool:
        """Whether no job of another session changes these objects until the end of the transaction."""

    def launch(
        self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool, cost: Cost
    ) -> JobId:
        """The rest of a plan becomes a job when the transaction commits; `passed`: it cannot be reverted then."""
