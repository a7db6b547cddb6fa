"""Consecutive requests, and statements that are cancelled while their job waits."""

import sqlite3
import threading
from collections.abc import Collection, Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import UNIQUE, ask, begin, judge, run
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.postgres import LocalPostgres
from tests.support.workers import wait_until

PLAIN = "create unique index item_code on item (code)"
# Other changes of the table are queued behind it.
REWRITE = "alter table concurrently item alter column category type text"


@pytest.mark.parametrize("later", ["pause", "resume"])
def test_cancel_is_not_undone_by_later_requests(node: Node, later: str):
    job_id = begin(node, UNIQUE)
    refused: list[str] = []

    def storm() -> None:
        ask(node, f"cancel job {job_id}")
        with pytest.raises(errors.NotInPrerequisiteState, match="being reverted") as caught:
            ask(node, f"{later} job {job_id}")
        refused.append(caught.value.sqlstate)

    FAULTS.arm("job.raised", storm)
    run(node, job_id)
    assert refused == ["55000"]
    judge(node, job_id, JobStatus.CANCELED)


def test_statement_is_cancelled_while_its_job_pauses_after_an_error(node: Node):
    """Each attempt fails; the statement ends in one of the pauses between them."""
    session = Session(node)

    def fail() -> None:
        FAULTS.arm("job.built", fail)
        raise errors.DiskFull(file="a segment")

    FAULTS.arm("job.built", fail)
    ender = threading.Thread(target=lambda: _end_after(node, session, "retries"))
    ender.start()
    with pytest.raises(errors.Error) as caught:
        session.execute(PLAIN)
    assert caught.value.sqlstate == "57014"
    ender.join()
    FAULTS.disarm()
    assert "no return" not in (caught.value.hint or "")
    judge(node, JobId(1), JobStatus.CANCELED)
    session.close()


def _end_after(node: Node, session: Session, text: str) -> None:
    wait_until(lambda: any(text in event for (event,) in ask(node, "select event from seachange.events")), text)
    session.interrupt()


@pytest.mark.parametrize("catalog_kind", ["postgresql"])
def test_statement_is_cancelled_while_the_catalog_is_unavailable(node: Node, postgres_server: LocalPostgres):
    """The message must not claim that the job cannot be reverted."""
    session = Session(node)

    def cut() -> None:
        postgres_server.kill()
        threading.Timer(0.5, session.interrupt).start()

    FAULTS.arm("job.raised", cut)
    with pytest.raises(errors.Error) as caught:
        session.execute(PLAIN)
    postgres_server.start()
    assert caught.value.sqlstate == "57014"
    assert "CANCEL JOB 1" in (caught.value.hint or "")
    ask(node, "cancel job 1")
    run(node, JobId(1))
    judge(node, JobId(1), JobStatus.CANCELED)
    session.close()


@pytest.fixture
def worker(shop: Place) -> Iterator[Node]:
    opened = open_node(shop.data, shop.catalog, name="worker", expiry_ms=60_000)
    opened.jobs.paused = True
    yield opened
    opened.close()


@pytest.fixture
def holder(node: Node, worker: Node) -> Iterator[Session]:
    """Its transaction holds the name that a queued job needs, for which the worker has begun to wait."""
    first = begin(worker, REWRITE)
    assert begin(worker, "create index concurrently taken on item (category)") == 2
    session = Session(node)
    session.execute("begin")
    session.execute("create table taken (id int primary key)")
    run(worker, first)
    worker.jobs.take_up()
    wait_until(lambda: worker.parts.catalog.lock_queues().waits, "the wait for the name")
    ((waits_for,),) = ask(worker, "select waiting_for from seachange.jobs where id = 2")
    assert "transactions that hold what it changes" in waits_for
    yield session
    session.rollback()
    session.close()


@pytest.mark.parametrize(("verb", "status"), [("cancel", "canceled"), ("pause", "paused")])
def test_queued_job_that_waits_for_a_transaction_gets_requests(worker: Node, holder: Session, verb: str, status: str):
    ask(worker, f"{verb} job 2")
    worker.jobs.paused = False
    wait_until(lambda: ask(worker, "select status from seachange.jobs where id = 2") == [(status,)], status)


def test_a_node_is_closed_while_a_queued_job_waits_for_a_transaction(node: Node, worker: Node, holder: Session):
    """Another node begins the job when the transaction has ended."""
    closing = threading.Thread(target=worker.jobs.stop, daemon=True)
    closing.start()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert ask(node, "select status, error from seachange.jobs where id = 2") == [("pending", None)]
    worker.close()
    holder.rollback()
    node.jobs.paused = False
    wait_until(lambda: not node.parts.catalog.jobs(unfinished=True), "the job")
    assert ask(node, "select status from seachange.jobs where id = 2") == [("succeeded",)]


UNWRITTEN = [errors.DiskFull(file="the catalog"), errors.CatalogUnavailable(catalog="it", detail="cut")]


@pytest.mark.parametrize("problem", UNWRITTEN, ids=lambda problem: type(problem).__name__)
def test_runner_waits_until_an_error_can_be_recorded(node: Node, problem: errors.Error):
    """The catalog refuses all writes for a while, the step's and the error's; the statement reports neither."""
    left = [problem] * 3

    def refuse() -> None:
        if left:
            FAULTS.arm("commit.locked", refuse)
            raise left.pop()

    def fail() -> None:
        FAULTS.arm("commit.locked", refuse)
        raise errors.DiskFull(file="a segment")

    FAULTS.arm("job.built", fail)
    session = Session(node)
    session.execute(PLAIN)
    session.close()
    judge(node, JobId(1), JobStatus.SUCCEEDED)


def test_bug_at_the_start_of_a_queued_job_fails_it(worker: Node):
    first = begin(worker, REWRITE)
    second = begin(worker, "create index concurrently item_second on item (category)")
    run(worker, first)

    def begin_wrong(job: Job, interrupts: SessionInterrupts) -> Collection[JobId]:
        raise KeyError("unheard of")

    worker.jobs.begin = begin_wrong
    for thread in worker.jobs.take_up():
        thread.join()
    assert ask(worker, f"select status, sqlstate from seachange.jobs where id = {second}") == [("failed", "XX000")]
    (event,) = (text for (text,) in ask(worker, "select event from seachange.events") if "XX000" in text)
    assert "Traceback" in event


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_unreadable_job_does_not_block_other_jobs(worker: Node, shop: Place):
    unread, other = begin(worker, UNIQUE), begin(worker, "create index concurrently other_code on other (code)")
    with closing(sqlite3.connect(shop.data / "catalog.sqlite")) as db:
        db.execute(
            "update job set body = replace(body, '\"statement\"', '\"of another time\"') where id = ?", (unread,)
        )
        db.commit()
    for _ in range(2):
        for thread in worker.jobs.take_up():
            thread.join()
    record = worker.parts.catalog.job(other)
    assert record is not None
    assert record.status is JobStatus.SUCCEEDED
    left = [
        event
        for event in worker.parts.catalog.events()
        if event.job_id == unread and "will be retried later" in event.text
    ]
    assert len(left) == 1
