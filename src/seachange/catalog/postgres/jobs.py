"""Jobs and the event log; each read or request is one statement."""

from __future__ import annotations

from seachange.catalog.postgres.connections import Connection
from seachange.catalog.postgres.read import query
from seachange.catalog.rows import CHANGES_KEPT_MAX, EVENTS_KEPT_US
from seachange.model.jobs import JobId, JobRequest

_REQUEST = """UPDATE seachange.job SET request = %s WHERE id = %b AND request <> 'cancel'
    AND status NOT IN ('succeeded', 'failed', 'canceled')"""
_LOCK = "SELECT seachange.lock_sequencer()"
_CANCEL = """UPDATE seachange.job SET request = 'cancel', revision = revision + 1 WHERE id = %b AND revision = %b
    AND status NOT IN ('succeeded', 'failed', 'canceled')"""
_TAKE = "UPDATE seachange.sequencer SET next_job = next_job + 1 RETURNING next_job - 1"
_TELL = """INSERT INTO seachange.event (timestamp_us, job_id, seq, text)
    VALUES (seachange.now_us(), %b, seachange.head(), %s)"""
_FORGET_EVENTS = "DELETE FROM seachange.event WHERE timestamp_us < seachange.now_us() - %b"
_FORGET_JOBS = """DELETE FROM seachange.job WHERE updated_us < seachange.now_us() - %b
    AND status IN ('succeeded', 'failed', 'canceled')"""
_FORGET_CHANGES = """DELETE FROM seachange.change WHERE timestamp_us < seachange.now_us() - %b
    OR seq <= (SELECT seq FROM seachange.change ORDER BY seq DESC LIMIT 1 OFFSET %b)"""


def take_id(db: Connection) -> JobId:
    return JobId(query(db, _TAKE)[0][0])


def ask(db: Connection, job_id: JobId, request: JobRequest) -> bool:
    return db.execute(_REQUEST, (request.value, job_id)).rowcount > 0


def cancel(db: Connection, job_id: JobId, expected: int) -> bool:
    with db.transaction():
        db.execute(_LOCK)
        return db.execute(_CANCEL, (job_id, expected)).rowcount > 0


def log_event(db: Connection, job_id: JobId, text: str) -> None:
    db.execute(_TELL, (job_id, text))


def forget_old(db: Connection) -> None:
    for statement in (_FORGET_EVENTS, _FORGET_JOBS):
        db.execute(statement, (EVENTS_KEPT_US,))
    db.execute(_FORGET_CHANGES, (EVENTS_KEPT_US, CHANGES_KEPT_MAX))
