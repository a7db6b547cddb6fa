"""The history of schema changes: one record for each publication.

A record is a part of the commit that publishes the change, and the sequence number of that commit is its id. So
the definitions before and after a change are those of the log before and at its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seachange.model.codecs.codec import Codec
from seachange.model.ids import DescriptorId, IndexId, Seq
from seachange.model.jobs import JobId

# Between the statements of a transaction block.
_SEPARATOR = "; "


@dataclass(frozen=True, slots=True)
class ChangeWork:
    """What a change reads, writes and waits for. A number that is not known is None."""

    rows: int | None = 0
    written_bytes: int | None = 0
    duration_us: int | None = 0
    drains: int = 0
    drained_us: int = 0


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change as its statement has planned it; `rank` orders strategies by their cost. `refills`: rows of the history
    were written again."""

    statement: str
    role: str
    database: str
    began_us: int
    strategy: str
    rank: int
    estimate: ChangeWork
    refills: bool = False


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """The versions of a descriptor around the publication; 0: there is none. `what` names it, with its kind;
    `lost_indexes` are those that only history has from then on."""

    id: DescriptorId
    what: str
    before: int
    after: int
    lost_indexes: tuple[IndexId, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """`planned` are the statements of the change, `done` what they took, without the time since the first one.
    `is_double`: its first part was published before, above commit `after`."""

    planned: tuple[PlannedChange, ...]
    objects: tuple[ChangedObject, ...]
    jobs: tuple[JobId, ...] = ()
    done: ChangeWork = ChangeWork()
    is_double: bool = False
    after: int = 0

    @property
    def statement(self) -> str:
        """Their texts; a statement that was carried out in parts is one."""
        texts = [planned.statement for planned in self.planned]
        return _SEPARATOR.join(t for n, t in enumerate(texts) if n == 0 or t != texts[n - 1])

    @property
    def strategy(self) -> str:
        """The most expensive one."""
        return max(self.planned, key=lambda planned: planned.rank).strategy

    @property
    def estimate(self) -> ChangeWork:
        return total_work([planned.estimate for planned in self.planned])


@dataclass(frozen=True, slots=True)
class PublishedChange:
    """A change of the history: its id, and when it was committed."""

    id: Seq
    timestamp_us: int
    record: ChangeRecord

    @property
    def done(self) -> ChangeWork:
        """What it took, up to its commit."""
        done = self.record.done
        took_us = self.timestamp_us - self.record.planned[0].began_us
        return ChangeWork(done.rows, done.written_bytes, max(took_us, 0), done.drains, done.drained_us)


def total_work(works: Sequence[ChangeWork]) -> ChangeWork:
    return ChangeWork(
        rows=_sum([work.rows for work in works]),
        written_bytes=_sum([work.written_bytes for work in works]),
        duration_us=_sum([work.duration_us for work in works]),
        drains=sum(work.drains for work in works),
        drained_us=sum(work.drained_us for work in works),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


CHANGE_CODEC = Codec(ChangeRecord)
