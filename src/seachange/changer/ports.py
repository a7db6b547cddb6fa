"""What running a change needs of the world; the engine provides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from seachange.model.change.ops import BackfillIndexes, SetState, Validate
from seachange.model.change.vacuum import RewriteIndex, Rewritten
from seachange.model.change.work import Built, UnitDone, Violation
from seachange.model.ids import DescriptorId, Epoch, IndexId, Seq, TableId
from seachange.model.jobs import JobChange, JobId, JobRecord


class Lost(Exception):
    """Another runner, or another change, was faster: nothing was written."""


class Overtaken(Lost):
    """Another has given the index a generation meanwhile."""


class Unconverted(Exception):
    """Since the rows were last looked at, one may have been written that has no value for a computed column: nothing
    was published."""


class Stopped(Exception):
    """The node is being closed: the job stays as it is, for another to take up."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that may still commit with an older version, and those of its sessions that keep it from moving on, with
    their transactions."""

    epoch: Epoch
    node: str
    sessions: tuple[str, ...] = ()

    def __str__(self) -> str:
        whose = f" ({', '.join(self.sessions)})" if self.sessions else ""
        return f"node {self.node}{whose}"


class Pipeline(Protocol):
    """Work that reads or moves bytes, as of one sequence, through the descriptors as of that sequence.

    `done` are the units that an earlier attempt at the same op and sequence has finished; `report` is told of each
    unit when it is done, keeps it, and may raise to stop the work. So the work of a unit that was reported is never
    done again, whoever goes on with it. `look` is called several times a second while units are under way, with how
    many of their rows are done, and may raise too.
    """

    @property
    def waiting(self) -> str:
        """What the work is waiting for now, in words; empty while it goes on."""

    def backfill(
        self,
        op: BackfillIndexes,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        look: Callable[[int], None],
    ) -> tuple[Built, ...]:
        """A generation for each of the op's indexes. Data that stands against it, a value that cannot be converted, is
        an error with its SQLSTATE (class 22 or 23)."""

    def validate(self, op: Validate, at: Seq, report: Callable[[int], None]) -> Violation | None:
        """`report` is told of how many rows have been read since it was last told."""

    def check_converted(self, table_id: TableId, at: Seq) -> None:
        """Raises the error (class 22 or 23), with the row, if one has no value for a computed column of the table."""

    def rewrite(
        self,
        op: RewriteIndex,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        look: Callable[[int], None],
        planned: Callable[[int], None],
    ) -> Rewritten | None:
        """A generation with the same rows as of `at`; None if the one that there is is as good, or the index is gone.
        `Overtaken` if that is a later one than `at`. `planned` is told of how many rows are written anew before any
        is."""

    def collect(self, look: Callable[[int], None]) -> int:
        """Deletes the files that nothing can reach any more, and gives their number."""

    def rows(self, table_id: TableId, at: Seq) -> int:
        """About how many rows a backfill or a validation of the table reads."""


class Changes(Protocol):
    """Commits that change the schema. Each carries the job as it is from then on; if the job, or a descriptor, has been
    changed by another meanwhile, nothing is written and `Lost` is raised."""

    def is_ours(self, record: JobRecord) -> bool:
        """Whether nobody else has taken the job up since it was changed from here."""

    def publish(
        self, mutations: Sequence[SetState], fenced: Iterable[TableId], job: JobChange, converted_at: Seq | None = None
    ) -> Seq:
        """New versions of the descriptors that the elements belong to. No older writer of the tables in `fenced` may
        commit after it. As of `converted_at` all rows have values for the computed columns that come into view with
        it (None: there are none); `Unconverted` if that may have changed since."""

    def published(self, descriptors: Iterable[DescriptorId]) -> Seq:
        """A sequence from which on whoever begins knows the newest versions of all of these."""

    def raise_versions(self, descriptors: Iterable[DescriptorId], job: JobChange) -> Seq:
        """From this sequence on, nobody commits who planned with an older version than the newest."""

    def attach(self, built: Sequence[Built], at: Seq, job: JobChange) -> Seq:
        """The generations become the first ones of their indexes, with base `at`."""

    def folding(self, index_id: IndexId) -> AbstractContextManager[bool]:
        """Whether the index is ours to fold meanwhile: it is no other's, here or on another node."""

    def swap(self, made: Rewritten, at: Seq, job: JobChange) -> Seq:
        """The generation replaces the one that it was made of, with base `at`; `Overtaken` if that is not the newest
        any more."""

    def record(self, job: JobChange) -> Seq:
        """The job alone."""

    def read(self, job_id: JobId) -> JobRecord | None: ...

    def head(self) -> Seq: ...

    def holders(self, below: Seq) -> tuple[Holder, ...]:
        """Who has, or may begin, a transaction that writes and has a snapshot below a sequence."""
