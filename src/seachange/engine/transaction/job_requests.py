"""Requests to a job: pause, resume, cancel.

**Invariant:** a cancel that was accepted takes effect: it is written at the revision at which the job was seen to be
before its point of no return, and refuses whatever is published from that revision. Nothing that is asked later
replaces it.
"""

from __future__ import annotations

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.changer.job import read_job
from seachange.model.jobs import FINISHED, JobId, JobRecord, JobRequest, JobStatus


def ask_job(catalog: Catalog, job_id: JobId, request: JobRequest) -> None:
    record = _find(catalog, job_id)
    if request is JobRequest.CANCEL:
        _cancel(catalog, record)
    elif record.status is JobStatus.REVERTING or not catalog.request_job(job_id, request):
        raise _refusal(_find(catalog, job_id))


def _cancel(catalog: Catalog, record: JobRecord) -> None:
    while True:
        if record.status in FINISHED:
            raise _refusal(record)
        if not read_job(record).can_be_canceled:
            raise errors.JobPastReturn(job=record.id, status=record.status)
        if record.request is JobRequest.CANCEL or catalog.cancel_job(record.id, record.revision):
            return
        # It has moved on.
        record = _find(catalog, record.id)


def cancel_if_possible(catalog: Catalog, job_id: JobId) -> None:
    """Of a job that may be over, or past the point of no return, by now."""
    try:
        ask_job(catalog, job_id, JobRequest.CANCEL)
    except (errors.JobPastReturn, errors.NotInPrerequisiteState, errors.UndefinedObject):
        return


def _find(catalog: Catalog, job_id: JobId) -> JobRecord:
    record = catalog.job(job_id)
    if record is None:
        raise errors.UndefinedObject(kind="job", name=str(job_id))
    return record


def _refusal(record: JobRecord) -> errors.Error:
    if record.status in FINISHED:
        return errors.NotInPrerequisiteState(detail=f"job {record.id} is over: {record.status}")
    return errors.NotInPrerequisiteState(detail=f"job {record.id} is being reverted")
