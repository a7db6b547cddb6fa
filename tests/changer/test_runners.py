"""Runners of a job: one at a time, and none whose epoch has ended or that was overtaken."""

import threading

import pytest

from seachange import errors
from seachange.changer.ports import Lost
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import ROWS, UNIQUE, ask, begin, judge, run
from tests.support.no_threads import no_threads
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until


@pytest.mark.parametrize("point", ["job.drained", "job.built", "job.validated"])
def test_a_runner_that_was_overtaken_publishes_nothing(node: Node, shop: Place, point: str):
    job_id = begin(node, UNIQUE)
    other = open_node(shop.data, shop.catalog, name="there")
    other.jobs.paused = True

    def overtake() -> None:
        FAULTS.disarm()
        run(other, job_id)

    try:
        FAULTS.arm(point, overtake)
        with pytest.raises(Lost):
            run(node, job_id)
        judge(other, job_id, JobStatus.SUCCEEDED)
    finally:
        other.close()


@pytest.mark.parametrize("point", ["job.drained", "job.built", "job.validated"])
def test_a_runner_whose_epoch_has_ended_publishes_nothing(node: Node, point: str):
    job_id = begin(node, UNIQUE)
    before = node.parts.catalog.job(job_id)
    FAULTS.arm(point, lambda: node.parts.catalog.end_node(node.epoch.epoch))
    with pytest.raises(Lost):
        run(node, job_id)
    after = node.parts.catalog.job(job_id)
    assert before is not None
    assert after is not None
    assert after.status is JobStatus.RUNNING
    # Under its next epoch the node may go on.
    ask(node, "select 1")
    assert [record.id for record in node.jobs.find_orphans()] == [job_id]
    FAULTS.disarm()
    run(node, job_id)
    judge(node, job_id, JobStatus.SUCCEEDED)


def test_job_that_gets_no_thread_is_run_in_a_later_round(node: Node):
    job_id = begin(node, UNIQUE)
    with no_threads():
        assert node.jobs.take_up() == []
    for thread in node.jobs.take_up():
        thread.join()
    judge(node, job_id, JobStatus.SUCCEEDED)


def test_job_of_a_live_node_is_not_taken_over(node: Node, shop: Place):
    job_id = begin(node, UNIQUE)
    other = open_node(shop.data, shop.catalog, name="there")
    other.jobs.paused = True
    try:
        assert not other.jobs.find_orphans()
        node.parts.catalog.end_node(node.epoch.epoch)
        assert [record.id for record in other.jobs.find_orphans()] == [job_id]
    finally:
        other.close()


def test_jobs_of_different_tables_run_at_the_same_time(node: Node):
    """One waits inside its backfill until the other is done."""
    first = begin(node, UNIQUE)
    second = begin(node, "create index concurrently other_code on other (code)")
    done = threading.Event()

    def wait() -> None:
        FAULTS.disarm()
        done.wait(PATIENCE_S)

    FAULTS.arm("job.built", wait)
    running = threading.Thread(target=lambda: run(node, first))
    running.start()
    wait_until(lambda: FAULTS.counts().get("job.built"), "the first to be at its work")
    run(node, second)
    done.set()
    running.join()
    statuses = ask(node, "select status from seachange.jobs order by id")
    assert statuses == [("succeeded",), ("succeeded",)]


def test_change_of_the_same_table_waits_for_the_job(node: Node):
    job_id = begin(node, UNIQUE)
    session = Session(node)
    session.execute("set lock_timeout = '200ms'")
    with pytest.raises(errors.LockNotAvailable, match=f"behind job {job_id}"):
        session.execute("alter table item add column more int")
    # A comment is added concurrently, another table does not wait, and a change that became useless is reverted.
    session.execute("comment on table item is 'things'")
    session.execute("alter table other add column more int")
    waiting = threading.Thread(target=lambda: session.execute("drop table item"))
    session.execute("set lock_timeout = 0")
    waiting.start()
    wait_until(
        lambda: ask(node, f"select 1 from seachange.jobs where id = {job_id} and request = 'cancel'"), "a cancel"
    )
    run(node, job_id)
    waiting.join()
    session.close()
    assert ask(node, "select status from seachange.jobs") == [("canceled",)]
    assert ask(node, "select table_name from seachange.layouts where table_name = 'item'") == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_indexes_of_one_statement_share_one_scan(node: Node):
    """The number of rows read is reported for each stage."""
    read = []
    for statement in (
        "alter table concurrently item add constraint a unique (id, code)",
        "alter table concurrently item add constraint b unique (id, code), add constraint c unique (id, category), "
        "add constraint d unique (code, id)",
    ):
        job = run(node, begin(node, statement))
        assert job.status is JobStatus.SUCCEEDED
        read.append([stage.rows for stage in job.stages if "backfill" in stage.what])
    assert read == [[ROWS], [ROWS]]
