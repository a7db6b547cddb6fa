"""Jobs and the event log, inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from seachange.catalog.rows import CHANGES_KEPT_MAX, EVENTS_KEPT_US, attached_segments, pack
from seachange.model.ids import Epoch
from seachange.model.jobs import JobChange, JobId, JobRequest
from seachange.model.log import CommitRequest

_REVISION = "SELECT revision FROM job WHERE id = ?"
_REQUEST = """UPDATE job SET request = ? WHERE id = ? AND request <> 'cancel'
    AND status NOT IN ('succeeded', 'failed', 'canceled')"""
_CANCEL = """UPDATE job SET request = 'cancel', revision = revision + 1 WHERE id = ? AND revision = ?
    AND status NOT IN ('succeeded', 'failed', 'canceled')"""
_NEXT_JOB = "SELECT next_job FROM sequencer"
_TAKE_JOB = "UPDATE sequencer SET next_job = next_job + 1"
_WRITE = """INSERT INTO job VALUES (?1, ?2, ?3, '', ?4, ?5, ?6, ?7, ?7, ?8)
    ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, status = excluded.status,
        descriptors = excluded.descriptors, body = excluded.body, epoch = excluded.epoch,
        updated_us = excluded.updated_us, updated_seq = excluded.updated_seq"""
_KEPT = "SELECT segment_id FROM job_file WHERE job_id = ?"
_KEEPER = "SELECT job_id FROM job_file WHERE segment_id = ?"
_KEEP = "INSERT INTO job_file VALUES (?, ?)"
_LET_GO = "DELETE FROM job_file WHERE segment_id = ?"
_INTENT = "SELECT 1 FROM intent WHERE segment_id = ? AND epoch = ?"
_TAKE_INTENT = "DELETE FROM intent WHERE segment_id = ?"
_GARBAGE = "INSERT INTO garbage VALUES (?)"
_TELL = "INSERT INTO event (timestamp_us, job_id, seq, text) VALUES (?, ?, ?, ?)"
_FORGET_EVENTS = "DELETE FROM event WHERE timestamp_us < ?"
_FORGET_JOBS = """DELETE FROM job WHERE updated_us < ? AND status IN ('succeeded', 'failed', 'canceled')"""
_FORGET_CHANGES = """DELETE FROM change WHERE timestamp_us < ?
    OR seq <= (SELECT seq FROM change ORDER BY seq DESC LIMIT 1 OFFSET ?)"""


def job_problem(db: sqlite3.Connection, epoch: Epoch, request: CommitRequest) -> str | None:
    """What prevents the commit: another revision of a job, or a file that does not belong to the job."""
    for change in request.jobs:
        row = db.execute(_REVISION, (change.id,)).fetchone()
        if (row[0] if row else 0) != change.expected:
            return f"job {change.id}"
        for file in change.files:
            if not keeps(db, (change,), file) and db.execute(_INTENT, (file, epoch)).fetchone() is None:
                return f"segment {file}"
    return None


def keeps(db: sqlite3.Connection, changes: Sequence[JobChange], segment_id: int) -> bool:
    """Whether a file belongs to one of the jobs."""
    row = db.execute(_KEEPER, (segment_id,)).fetchone()
    return row is not None and any(change.id == row[0] for change in changes)


def write_jobs(db: sqlite3.Connection, epoch: Epoch, request: CommitRequest, seq: int, now_us: int) -> None:
    """Called after the segments are written: an attached file no longer belongs to the job."""
    attached = {segment.id for segment in attached_segments(request)}
    for change in request.jobs:
        packed = pack(change.descriptors)
        values = (change.id, change.expected + 1, change.status.value, packed, change.body, epoch, now_us, seq)
        db.execute(_WRITE, values)
        kept = {id_ for (id_,) in db.execute(_KEPT, (change.id,))}
        for id_ in kept.difference(change.files):
            db.execute(_LET_GO, (id_,))
            if id_ not in attached:
                db.execute(_GARBAGE, (id_,))
        for file in set(change.files) - kept:
            db.execute(_TAKE_INTENT, (file,))
            db.execute(_KEEP, (file, change.id))
        if change.event:
            db.execute(_TELL, (now_us, change.id, seq, change.event))


def take_id(db: sqlite3.Connection) -> JobId:
    (id_,) = db.execute(_NEXT_JOB).fetchone()
    db.execute(_TAKE_JOB)
    return JobId(id_)


def ask(db: sqlite3.Connection, job_id: JobId, request: JobRequest) -> bool:
    return db.execute(_REQUEST, (request.value, job_id)).rowcount > 0


def cancel(db: sqlite3.Connection, job_id: JobId, expected: int) -> bool:
    return db.execute(_CANCEL, (job_id, expected)).rowcount > 0


def log_event(db: sqlite3.Connection, job_id: JobId, text: str, seq: int, now_us: int) -> None:
    db.execute(_TELL, (now_us, job_id, seq, text))


def forget_old(db: sqlite3.Connection, now_us: int) -> None:
    db.execute(_FORGET_EVENTS, (now_us - EVENTS_KEPT_US,))
    db.execute(_FORGET_JOBS, (now_us - EVENTS_KEPT_US,))
    db.execute(_FORGET_CHANGES, (now_us - EVENTS_KEPT_US, CHANGES_KEPT_MAX))
