"""Which sessions and nodes change which tables now: the holders of coordination keys, and running jobs.

**Invariant:** a session that another change waits for is listed as soon as it holds the key: locks and jobs are read
from the catalog. Only the statement of a change without a job is as old as the last heartbeat of its node, unless it is
this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from seachange import errors
from seachange.changer.job import Job, read_job
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import Lease
from seachange.model.ids import DescriptorId, Epoch
from seachange.model.jobs import JobId, JobRecord, JobStatus
from seachange.model.locking import LockStrength
from seachange.storage.keys import change_hash


@dataclass(frozen=True, slots=True)
class Changer:
    """`job_id` is None, and `statement` may be, for a change that COMMIT alone publishes."""

    job_id: JobId | None = None
    statement: str | None = None


# By node, session ("" for the node itself, which runs a job) and table.
Changers = Mapping[tuple[Epoch, str, DescriptorId], Changer]


def find_changers(
    epoch: EpochState, leases: Mapping[Epoch, Collection[Lease]], ids: Collection[DescriptorId]
) -> Changers:
    keys = {change_hash(id_): id_ for id_ in ids}
    found: dict[tuple[Epoch, str, DescriptorId], Changer] = {}
    for lock in epoch.catalog.locks_held(LockStrength.UPDATE):
        if lock.key in keys:
            found[lock.epoch, f"session {lock.actor}", keys[lock.key]] = Changer()
    for node, held in leases.items():
        for place, text in (
            ((node, lease.session, id_), text) for lease in held for id_, text in lease.changed.items()
        ):
            if place in found:
                found[place] = replace(found[place], statement=text)
    for record, job in _running(epoch):
        session = job.owner.session if job.owner is not None else ""
        for id_ in set(record.descriptors).intersection(ids):
            found[record.epoch, session, id_] = Changer(job.id, job.statement)
    return found


def _running(epoch: EpochState) -> Iterator[tuple[JobRecord, Job]]:
    """Jobs that are changing something; a queued one waits itself."""
    for record in epoch.catalog.jobs(unfinished=True):
        try:
            job = read_job(record)
        except errors.UnreadableJob:
            continue
        if record.status is not JobStatus.PENDING:
            yield record, job
