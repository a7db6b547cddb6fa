"""Ports of the changer, which the engine implements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from seachange.model.change.ops import BackfillIndexes, RestoreColumns, SetState, Validate
from seachange.model.change.vacuum import RewriteIndex, Rewritten
from seachange.model.change.work import Built, UnitDone, Violation
from seachange.model.change_history import ChangeRecord
from seachange.model.ids import DescriptorId, Epoch, IndexId, Seq, TableId
from seachange.model.jobs import JobChange, JobId, JobRecord

# What a job waits for while its Spark application is being started.
SPARK_START = "Spark to start"


class Lost(Exception):
    """Another runner, or another change, was faster: nothing was written."""


class Overtaken(Lost):
    """The index has got another generation in the meantime."""


class Unconverted(Exception):
    """Since the rows were last checked, one without a value for a computed column may have been written: nothing was
    published."""


class Stopped(Exception):
    """The node is being closed: the job stays as it is, for another node to take over."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that may still commit with an older version, and the sessions whose transactions keep it from moving
    on."""

    epoch: Epoch
    node: str
    sessions: tuple[str, ...] = ()

    def __str__(self) -> str:
        whose = f" ({', '.join(self.sessions)})" if self.sessions else ""
        return f"node {self.node}{whose}"


class Pipeline(Protocol):
    """Work that reads or moves bytes, as of one sequence, with the descriptors as of that sequence.

    `done` are the units that an earlier attempt at the same op and sequence has finished. `report` is called with each
    finished unit, stores it, and may raise to stop the work; a reported unit is never repeated, whichever node
    continues. `on_progress` is called several times a second while units are running, with the number of their rows
    that are done, and may raise too.
    """

    @property
    def waiting(self) -> str:
        """What the work is waiting for, in words; empty while it is running."""

    def backfill(
        self,
        op: BackfillIndexes,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        on_progress: Callable[[int], None],
    ) -> tuple[Built, ...]:
        """Builds a generation for each of the op's indexes. A problem of the data, such as a value that cannot be
        converted, raises an error of class 22 or 23."""

    def validate(self, op: Validate, at: Seq, report: Callable[[int], None]) -> Violation | None:
        """`report` is called with the number of rows read since the last call."""

    def check_converted(self, table_id: TableId, at: Seq) -> None:
        """Raises an error of class 22 or 23, with the row, if a row has no value for a computed column of the table."""

    def rewrite(
        self,
        op: RewriteIndex,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        on_progress: Callable[[int], None],
        planned: Callable[[int], None],
    ) -> Rewritten | None:
        """Builds a generation with the same rows as of `at`; None if the current one needs no rewrite, or the index
        does not exist. Raises `Overtaken` if there is a later generation than `at`. `planned` is called first, with the
        number of rows to rewrite."""

    def collect(self, on_progress: Callable[[int], None]) -> int:
        """Deletes the files that nothing can reach any more, and returns their number."""

    def rows(self, table_id: TableId, at: Seq) -> int:
        """An estimate of how many rows a backfill or a validation of the table reads."""


class Restorer(Protocol):
    """Writes rows by transactions of its own, each of few rows, as any writer would."""

    def restore(self, op: RestoreColumns, on_progress: Callable[[int], None]) -> int:
        """Until each row has the values that the row of its key had; returns the number of rows that got some. It may
        be called again. Raises an error of class 72 if the values are no longer kept."""


class Changes(Protocol):
    """Commits that change the schema. Each carries the next record of the job; if the job or a descriptor has been
    changed by another commit, nothing is written and `Lost` is raised."""

    def is_ours(self, record: JobRecord) -> bool:
        """Whether this node still owns the job."""

    def publish(
        self,
        mutations: Sequence[SetState],
        fenced: Iterable[TableId],
        job: JobChange,
        converted_at: Seq | None = None,
        history: ChangeRecord | None = None,
    ) -> Seq:
        """Publishes new versions of the descriptors that the elements belong to. No writer of `fenced` tables with an
        older version can commit after it. As of `converted_at` all rows have values for the computed columns that
        become public (None: there are none); raises `Unconverted` if that may have changed since. `history` is the
        record of the publication, without the objects that it changes."""

    def published(self, descriptors: Iterable[DescriptorId]) -> Seq:
        """A sequence since which every new transaction uses the newest versions of these descriptors."""

    def raise_versions(self, descriptors: Iterable[DescriptorId], job: JobChange) -> Seq:
        """From this sequence on, no transaction that planned with an older version can commit."""

    def attach(self, built: Sequence[Built], at: Seq, job: JobChange) -> Seq:
        """Attaches the generations as the first ones of their indexes, with base `at`."""

    def compacting(self, index_id: IndexId) -> AbstractContextManager[bool]:
        """Whether this job has the compaction lock of the index, across all nodes."""

    def swap(self, made: Rewritten, at: Seq, job: JobChange) -> Seq:
        """Replaces the generation that was rewritten, with base `at`; raises `Overtaken` if it is no longer the
        newest."""

    def record(self, job: JobChange) -> Seq:
        """Writes the job's record only."""

    def read(self, job_id: JobId) -> JobRecord | None: ...

    def head(self) -> Seq: ...

    def holders(self, below: Seq, raised: Iterable[DescriptorId] | None) -> tuple[Holder, ...]:
        """The nodes that have, or may begin, a writing transaction with a snapshot below a sequence, besides that of
        the session which makes the change. With `raised`, transactions that have not used an older version of one of
        these descriptors do not count, nor do those that wait for this change or for any other."""

    def waiting_for_writers(self) -> AbstractContextManager[None]:
        """Shows other sessions that the change waits for older transactions."""
