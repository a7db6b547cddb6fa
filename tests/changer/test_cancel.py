"""CANCEL and PAUSE reach a job wherever it is, and one commit decides between a cancel and the publication."""

import threading
from collections.abc import Iterator

import pytest

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobRequest, JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import BROKEN, UNIQUE, ask, begin, judge, run
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

PATIENT_MS = 600_000


@pytest.fixture
def worker(shop: Place) -> Iterator[Node]:
    """A node with a running worker."""
    opened = open_node(shop.data, shop.catalog, name="worker")
    yield opened
    FAULTS.disarm()
    opened.close()


def cancel(node: Node, job_id: JobId) -> str:
    try:
        ask(node, f"cancel job {job_id}")
    except errors.Error as problem:
        return problem.sqlstate
    return ""


@pytest.mark.parametrize("occurrence", [1, 2, 4, *range(6, 9)])
def test_one_commit_decides_between_a_cancel_and_the_publication(node: Node, occurrence: int):
    """The cancel comes after the runner has prepared its next commit and before it is sent, at each commit in turn."""
    job_id = begin(node, UNIQUE)
    answers: list[str] = []
    FAULTS.arm("commit.queued", lambda: answers.append(cancel(node, job_id)), occurrence)
    run(node, job_id)
    FAULTS.disarm()
    accepted = answers == [""]
    # Before publication, after it, and when the job is finished.
    assert answers in ([""], ["55006"], [])
    judge(node, job_id, JobStatus.CANCELED if accepted else JobStatus.SUCCEEDED)


def interrupted(node: Node, interrupts: SessionInterrupts, job_id: JobId) -> None:
    def pause(seconds: float) -> None:
        interrupts.pause(seconds)

    node.jobs.run(job_id, Conditions(pause, interrupts, lambda job: None, PATIENT_MS))


@pytest.mark.parametrize(("verb", "status"), [("cancel", JobStatus.CANCELED), ("pause", JobStatus.PAUSED)])
def test_request_interrupts_drain(worker: Node, shop: Place, verb: str, status: JobStatus):
    with SqlProcess(shop, expiry_ms=60_000) as process:
        process.run("begin")
        process.run("insert into item values (1001, 'new', 1)")
        session = Session(worker)
        session.execute("set seachange.drain_timeout = '600s'")
        failed = threading.Thread(target=lambda: _fail(session, BROKEN))
        failed.start()
        wait_until(lambda: ask(worker, "select 1 from seachange.jobs where waiting_for <> ''"), "the drain")
        ask(worker, f"{verb} job 1")
        wait_until(lambda: ask(worker, "select status from seachange.jobs") == [(status.value,)], status.value)
        if status is JobStatus.PAUSED:
            ask(worker, "cancel job 1")
        failed.join(PATIENCE_S)
        assert not failed.is_alive()
        session.close()
        assert process.run("commit") == []


def test_request_interrupts_pause_after_error(worker: Node):
    def fail() -> None:
        FAULTS.arm("job.built", fail)
        raise errors.DiskFull(file="a segment")

    FAULTS.arm("job.built", fail)
    job_id = begin(worker, UNIQUE)
    wait_until(lambda: _events_like(worker, "retries"), "an error")
    ask(worker, f"cancel job {job_id}")
    wait_until(lambda: not worker.parts.catalog.jobs(unfinished=True), "the end of the job")
    FAULTS.disarm()
    judge(worker, job_id, JobStatus.CANCELED)


def _fail(session: Session, statement: str) -> None:
    with pytest.raises(errors.Error):
        session.execute(statement)


def _events_like(node: Node, text: str) -> bool:
    return any(text in event for (event,) in ask(node, "select event from seachange.events"))


@pytest.mark.parametrize("request_", [JobRequest.PAUSE, JobRequest.CANCEL])
def test_request_interrupts_query_of_kernel(node: Node, request_: JobRequest):
    """Anything that runs under the interrupts of the job ends by a nudge, and the job handles the request."""
    job_id = begin(node, UNIQUE)
    interrupts = SessionInterrupts()
    cut: list[str] = []

    class Query:
        def __init__(self) -> None:
            self.ended = threading.Event()

        def interrupt(self) -> None:
            self.ended.set()

    def long_query() -> None:
        query = Query()
        with interrupts.reaching(query):
            ask(node, f"{request_.value} job {job_id}")
            threading.Thread(target=node.jobs.nudge).start()
            assert query.ended.wait(PATIENCE_S)
            cut.append("cut")
            interrupts.check()

    FAULTS.arm("job.validated", long_query)
    with node.jobs.holding(job_id):
        interrupted(node, interrupts, job_id)
    assert cut == ["cut"]
    status = JobStatus.PAUSED if request_ is JobRequest.PAUSE else JobStatus.CANCELED
    assert ask(node, "select status from seachange.jobs") == [(status.value,)]
    # The nudge does not affect the next statement of a session.
    interrupts.check()
