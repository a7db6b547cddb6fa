"""PAUSE, RESUME and CANCEL at every point of a job."""

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.model.jobs import JobId, JobRequest, JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import BROKEN, UNIQUE, ask, begin, indexes, judge, run

pytestmark = pytest.mark.either_catalog

# The points at which a job can get a request; before the publication it can be reverted.
BEFORE = ["job.drained", "job.raised", "job.unit", "job.attached", "job.published", "job.drained:2", "job.raised:2"]
VALIDATED = ["job.validated"]
AFTER = ["job.published:2"]


def ask_at(point: str, node: Node, job_id: JobId, request: JobRequest) -> None:
    """The request exists when the runner passes the point."""
    name, _, occurrence = point.partition(":")
    FAULTS.arm(name, lambda: _request(node, job_id, request), int(occurrence or 1))


def _request(node: Node, job_id: JobId, request: JobRequest) -> None:
    assert node.parts.catalog.request_job(job_id, request)


@pytest.mark.parametrize("point", [*BEFORE, *VALIDATED])
def test_a_pause_holds_the_job_until_it_is_resumed(node: Node, point: str):
    job_id = begin(node, UNIQUE)
    ask_at(point, node, job_id, JobRequest.PAUSE)
    assert run(node, job_id).status is JobStatus.PAUSED
    assert not node.jobs.find_orphans()
    assert indexes(node)["item_code"] != "PUBLIC"
    ask(node, f"resume job {job_id}")
    assert [record.id for record in node.jobs.find_orphans()] == [job_id]
    run(node, job_id)
    judge(node, job_id, JobStatus.SUCCEEDED)


@pytest.mark.parametrize("point", [*BEFORE, *VALIDATED])
def test_cancel_reverts_the_change(node: Node, point: str):
    job_id = begin(node, UNIQUE)
    ask_at(point, node, job_id, JobRequest.CANCEL)
    run(node, job_id)
    judge(node, job_id, JobStatus.CANCELED)
    assert ask(node, f"select sqlstate from seachange.jobs where id = {job_id}") == [("57014",)]


def test_a_paused_job_is_canceled(node: Node):
    job_id = begin(node, UNIQUE)
    ask_at("job.raised", node, job_id, JobRequest.PAUSE)
    assert run(node, job_id).status is JobStatus.PAUSED
    ask(node, f"cancel job {job_id}")
    run(node, job_id)
    judge(node, job_id, JobStatus.CANCELED)


@pytest.mark.parametrize("point", AFTER)
def test_past_the_point_of_no_return_it_cannot_be_canceled(node: Node, point: str):
    job_id = begin(node, UNIQUE)
    refused: list[str] = []

    def cancel() -> None:
        with pytest.raises(errors.JobPastReturn) as caught:
            ask(node, f"cancel job {job_id}")
        refused.append(caught.value.sqlstate)

    name, _, occurrence = point.partition(":")
    FAULTS.arm(name, cancel, int(occurrence))
    run(node, job_id)
    assert refused == ["55006"]
    judge(node, job_id, JobStatus.SUCCEEDED)


def test_reverting_job_cannot_be_paused_and_keeps_its_error(node: Node):
    job_id = begin(node, BROKEN)
    ask_at("job.reverting", node, job_id, JobRequest.PAUSE)
    run(node, job_id)
    judge(node, job_id, JobStatus.FAILED, "item_category")
    ((code, text),) = ask(node, f"select sqlstate, error from seachange.jobs where id = {job_id}")
    assert code == "23505"
    assert "item_category" in text


def test_disk_error_is_retried(node: Node):
    job_id = begin(node, UNIQUE)

    def fail() -> None:
        raise errors.DiskFull(file="a segment")

    FAULTS.arm("job.built", fail)
    run(node, job_id)
    judge(node, job_id, JobStatus.SUCCEEDED)
    events = [event for (event,) in ask(node, "select event from seachange.events")]
    assert any("retries after an error: 53100" in event for event in events)
