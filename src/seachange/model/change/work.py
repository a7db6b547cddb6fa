"""What work on the rows of a table gives: units that are done, generations, violations.

**Invariant:** a file that a unit has written is either an intent of the epoch that wrote it or kept by the job; the
commit that writes the job's record makes it the latter, and so the files of a finished unit outlive their writer.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import IndexId, SegmentId
from seachange.model.segments import GenerationMember


@dataclass(frozen=True, slots=True)
class UnitDone:
    """A unit of a backfill whose output is kept.

    `unit` is its name, the same in every attempt at the same work; `files` are the segment files that it wrote, by the
    ids under which they were reserved; `output` says in the pipeline's own words what is in them; `rows` is how many
    rows of the source it has read.
    """

    unit: str
    files: tuple[SegmentId, ...]
    output: str
    rows: int


@dataclass(frozen=True, slots=True)
class Built:
    """The generation that a backfill has made of an index, complete as of the sequence that was read. Its files are
    intents of the runner's epoch, or kept by the job."""

    index_id: IndexId
    members: tuple[GenerationMember, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that do not meet a constraint, or have no value of a new type: how many, and one of them in words. The
    message names the constraint as PostgreSQL does; `detail` the offending row."""

    sqlstate: str
    message: str
    detail: str
    rows: int
