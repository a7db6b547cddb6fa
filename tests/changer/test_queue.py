"""Asynchronous statements on a table that is being changed: they return at once, run in order, and fail together."""

import signal
from collections.abc import Iterator
from threading import Event

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import inspect
from tests.changer.changing import BROKEN, UNIQUE, ask, begin, indexes, run
from tests.cluster.sqlprocess import SqlProcess
from tests.engine.threads import together
from tests.support.nodes import HOUR_MS, Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

SECOND = "alter table concurrently item add column second int default 2"
THIRD = "alter table concurrently item add column third int default 3"


@pytest.fixture
def worker(shop: Place) -> Iterator[Node]:
    opened = open_node(shop.data, shop.catalog, name="worker")
    opened.jobs.paused = True
    yield opened
    opened.close()


def statuses(node: Node) -> list[str]:
    return [status for (status,) in ask(node, "select status from seachange.jobs order by id")]


def work_off(node: Node) -> None:
    """Runs all runnable jobs until none is left."""
    while begun := node.jobs.take_up():
        for thread in begun:
            thread.join()


def test_queued_statements_return_at_once_and_run_in_order(worker: Node):
    first, second, third = (begin(worker, statement) for statement in (UNIQUE, SECOND, THIRD))
    shown = "select id, status, stage, waiting_for from seachange.jobs where status = 'pending' order by id"
    assert ask(worker, shown) == [
        (second, "pending", "queue", f"job {first} to finish"),
        (third, "pending", "queue", f"job {first}, job {second} to finish"),
    ]
    # Not before its turn.
    assert [record.id for record in worker.jobs.find_orphans()] == [first]
    work_off(worker)
    assert statuses(worker) == ["succeeded"] * 3
    assert set(indexes(worker)) == {"item_pkey", "item_code"}
    assert ask(worker, "select distinct second, third from item") == [(2, 3)]
    begun = "select job_id from seachange.events where event like 'began%' order by seq"
    assert ask(worker, begun) == [(first,), (second,), (third,)]


def test_statement_is_queued_in_a_new_epoch(worker: Node):
    first = begin(worker, UNIQUE)
    FAULTS.arm("commit.queued", lambda: worker.parts.catalog.end_node(worker.epoch.epoch))
    try:
        second = begin(worker, SECOND)
    finally:
        FAULTS.disarm()
    shown = "select id, status from seachange.jobs order by id"
    assert ask(worker, shown) == [(first, "running"), (second, "pending")]
    work_off(worker)
    assert statuses(worker) == ["succeeded"] * 2


def test_a_failure_fails_what_was_queued_behind_it(worker: Node):
    first, second, third = (begin(worker, statement) for statement in (BROKEN, SECOND, THIRD))
    work_off(worker)
    assert statuses(worker) == ["failed"] * 3
    assert set(indexes(worker)) == {"item_pkey"}
    for job_id in (second, third):
        ((code, text),) = ask(worker, f"select sqlstate, error from seachange.jobs where id = {job_id}")
        assert code == "55000"
        assert f"job {first}" in text
        assert "item_category" in text


def test_a_failure_fails_nothing_that_does_not_depend_on_it(worker: Node):
    for statement in (BROKEN, "create index concurrently item_second on item (category)", UNIQUE):
        begin(worker, statement)
    work_off(worker)
    assert statuses(worker) == ["failed", "succeeded", "succeeded"]
    assert set(indexes(worker)) == {"item_pkey", "item_code", "item_second"}
    assert not inspect(worker).anomalies


def test_queued_statement_that_became_invalid_fails_alone(worker: Node):
    begin(worker, UNIQUE)
    begin(worker, "alter table concurrently item drop column category")
    begin(worker, "create index concurrently item_second on item (category)")
    work_off(worker)
    assert statuses(worker) == ["succeeded", "succeeded", "failed"]
    assert ask(worker, "select sqlstate from seachange.jobs where id = 3") == [("42703",)]


@pytest.mark.parametrize(("verb", "status"), [("cancel", "canceled"), ("pause", "paused")])
def test_what_is_queued_can_be_canceled_and_paused(worker: Node, verb: str, status: str):
    first, second = begin(worker, UNIQUE), begin(worker, SECOND)
    ask(worker, f"{verb} job {second}")
    assert worker.jobs.hold(first)
    work_off(worker)
    assert statuses(worker) == ["running", status]
    worker.jobs.let_go(first)
    work_off(worker)
    assert statuses(worker) == ["succeeded", status]
    if status == "paused":
        ask(worker, f"resume job {second}")
        work_off(worker)
        assert statuses(worker) == ["succeeded", "succeeded"]
    added = ask(worker, "select count(*) from pg_attribute where attrelid = 'item'::regclass and attname = 'second'")
    assert added == [(1 if status == "paused" else 0,)]


def test_waiting_statement_waits_for_the_queue(worker: Node):
    begin(worker, UNIQUE)
    second = begin(worker, SECOND)
    session = Session(worker)
    session.execute("set lock_timeout = '100ms'")
    with pytest.raises(Exception, match="behind job") as caught:
        session.execute("alter table item add column late int")
    assert caught.value.sqlstate == "55P03"  # type: ignore[attr-defined]
    session.close()
    run(worker, JobId(1))
    work_off(worker)
    assert worker.parts.catalog.job(second).status is JobStatus.SUCCEEDED  # type: ignore[union-attr]


def test_change_in_a_block_waits_for_the_job_and_then_runs(worker: Node):
    first = begin(worker, UNIQUE)
    session = Session(worker)
    session.execute("begin")
    is_over = Event()

    def change() -> None:
        try:
            session.execute("alter table item add column late int default 7")
        finally:
            is_over.set()

    def finish() -> None:
        waits = "waits for job"
        wait_until(lambda: is_over.is_set() or any(waits in notice for notice in session.notices), "the block to wait")
        run(worker, first)

    together(change, finish)
    session.execute("commit")
    session.close()
    assert statuses(worker) == ["succeeded"]
    assert set(indexes(worker)) == {"item_pkey", "item_code"}
    assert ask(worker, "select distinct late from item") == [(7,)]


def test_settings_of_the_session_hold_when_its_turn_comes(worker: Node):
    begin(worker, UNIQUE)
    session = Session(worker)
    session.execute("set timezone = 'Asia/Tokyo'")
    session.execute("alter table concurrently item add column at timestamptz default timestamptz '2026-01-01 09:00:00'")
    session.close()
    work_off(worker)
    assert ask(worker, "select distinct at = timestamptz '2026-01-01 00:00:00+00' from item") == [(True,)]


def test_another_node_begins_what_a_killed_one_has_queued(shop: Place):
    with SqlProcess(shop, expiry_ms=HOUR_MS) as process:
        process.run("set seachange.concurrently = 'async'")
        process.run(UNIQUE)
        process.run(SECOND)
        process.signal(signal.SIGKILL)
        process.wait()
    survivor = open_node(shop.data, shop.catalog, name="survivor")
    try:
        wait_until(lambda: not survivor.parts.catalog.jobs(unfinished=True), "the survivor to work the queue off")
        assert statuses(survivor) == ["succeeded"] * 2
    finally:
        survivor.close()
