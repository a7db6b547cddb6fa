"""The indexes that jobs build, for pg_stat_progress_create_index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from seachange import errors
from seachange.changer.job import DRAIN, Job, read_job
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.change import elements
from seachange.model.ids import TableId
from seachange.model.jobs import ShownBuild
from seachange.model.schema.descriptor import Table

# PostgreSQL's phases by the stage of a job. A job that waits for something else is before its work.
_PHASES = {
    DRAIN: "waiting for writers before build",
    "backfill": "building index: scanning table",
    "validation": "index validation: scanning table",
}
_OTHER = "initializing"


def find_builds(parts: NodeParts, find: Callable[[TableId], Table | None]) -> Iterator[ShownBuild]:
    """`find` gives a table of the session's database that its role may know of."""
    for record in parts.catalog.jobs(unfinished=True):
        try:
            job = read_job(record)
        except errors.UnreadableJob:
            continue
        if job.upkeep is not None or job.is_reverting:
            continue
        for index in _added(job):
            table = find(index.table_id)
            if table is not None:
                yield ShownBuild(
                    record.id,
                    _session_of(job),
                    table.database,
                    index.table_id,
                    index.index_id,
                    _PHASES.get(job.stage, _OTHER),
                    max(job.rows_total, job.rows_read),
                    job.rows_read,
                )


def _added(job: Job) -> Iterator[Any]:
    built = (elements.PrimaryIndex, elements.SecondaryIndex, elements.UniqueIndex)
    for target in job.change.targets:
        if target.adds and isinstance(target.element, built):
            yield target.element


def _session_of(job: Job) -> int | None:
    """The number in the name of a session."""
    number = job.owner.session.rpartition(" ")[2] if job.owner is not None else ""
    return int(number) if number.isdecimal() else None
