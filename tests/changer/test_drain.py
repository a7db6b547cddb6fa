"""Drains: which transactions a change waits for, for how long, and what is reported."""

import signal
import threading

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from tests.changer.changing import UNIQUE, ask, begin, judge, run
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

PATIENT_MS = 3_600_000
# The next heartbeat of a node that expires so late comes long after the test.
LATE_MS = 3_600_000


def test_the_change_waits_for_an_open_transaction_of_another_process(node: Node, shop: Place):
    with SqlProcess(shop, expiry_ms=LATE_MS) as process:
        process.run("begin")
        process.run("insert into item values (1001, 'new', 1)")
        job_id = begin(node, UNIQUE)
        running = threading.Thread(target=lambda: run(node, job_id, PATIENT_MS))
        running.start()
        shown = f"select waiting_for from seachange.jobs where id = {job_id}"
        # That node publishes its sessions as soon as it has applied the publication.
        wait_until(
            lambda: any("session " in (r[0] or "") for r in ask(node, shown)), "the change to say whom it waits for"
        )
        ((waiting,),) = ask(node, shown)
        assert "in a transaction since" in waiting
        assert "at most" in waiting
        assert running.is_alive()
        # As soon as it ends, not with the next heartbeat of that node.
        assert process.run("commit") == []
        running.join(PATIENCE_S)
        assert not running.is_alive()
    judge(node, job_id, JobStatus.SUCCEEDED)
    assert ask(node, "select count(*) from item where code = 'new'") == [(1,)]


def test_readers_and_idle_nodes_are_not_waited_for(node: Node, shop: Place):
    with SqlProcess(shop) as process, SqlProcess(shop) as idle:
        idle.run("select 1")
        process.run("begin read only")
        process.run("select count(*) from item")
        job_id = begin(node, UNIQUE)
        assert run(node, job_id, PATIENT_MS).status is JobStatus.SUCCEEDED
        assert process.run("select count(*) from item") == [[500]]
    assert not ask(node, "select event from seachange.events where event like 'no longer waits%'")


def test_idle_nodes_are_not_waited_for_where_nothing_was_published(node: Node, shop: Place):
    """The first step of VALIDATE is a raise: its version has been published long ago."""
    ask(node, "alter table item add constraint positive check (id > 0) not valid")
    with SqlProcess(shop, expiry_ms=LATE_MS) as idle:
        idle.run("select 1")
        job_id = begin(node, "alter table concurrently item validate constraint positive")
        assert run(node, job_id, PATIENT_MS).status is JobStatus.SUCCEEDED
    assert not ask(node, "select event from seachange.events where event like 'no longer waits%'")


def test_drain_ends_at_its_timeout(node: Node, shop: Place):
    with SqlProcess(shop) as process:
        process.run("begin")
        process.run("insert into item values (3001, 'c7', 1)")
        job_id = begin(node, UNIQUE)
        assert run(node, job_id, 100).status is JobStatus.SUCCEEDED
        events = [event for (event,) in ask(node, "select event from seachange.events")]
        assert any(event.startswith("no longer waits for node") for event in events)
        # A row that was planned before the change is not committed as it is: it would be a duplicate.
        assert process.run("commit") in ("40001", "23505")
    judge(node, job_id, JobStatus.SUCCEEDED)


def test_lock_timeout_reverts_the_change(node: Node, shop: Place):
    session = Session(node)
    session.execute("set lock_timeout = '100ms'")
    with SqlProcess(shop) as process:
        process.run("begin")
        process.run("update item set category = 1 where id = 1")
        with pytest.raises(errors.Error) as caught:
            session.execute("create unique index item_code on item (code)")
        assert caught.value.sqlstate == "55P03"
        process.run("rollback")
    session.close()
    judge(node, 1, JobStatus.FAILED)


def test_short_lock_timeout_does_not_count_transactions_of_other_tables(node: Node):
    """They are waited for longer than that, in case they are about to use the table."""
    session, writer = Session(node), Session(node)
    writer.execute("begin")
    writer.execute("insert into other values (1001, 'x')")
    session.execute("set lock_timeout = '20ms'")
    session.execute("create unique index item_code on item (code)")
    writer.execute("commit")
    for each in (session, writer):
        each.close()
    judge(node, 1, JobStatus.SUCCEEDED)


def test_cancelled_statement_reverts_its_change(node: Node, shop: Place):
    session = Session(node)
    session.execute("set seachange.drain_timeout = '60s'")
    session.execute("set statement_timeout = '300ms'")
    with SqlProcess(shop) as process:
        process.run("begin")
        process.run("update item set category = 1 where id = 1")
        with pytest.raises(errors.Error) as caught:
            session.execute("create unique index item_code on item (code)")
        assert caught.value.sqlstate == "57014"
        process.run("rollback")
    session.close()
    judge(node, 1, JobStatus.CANCELED)


def begins_with_a_row(process: SqlProcess) -> bool:
    process.run("rollback")
    process.run("begin")
    answer = process.run("insert into item values (2001, 'c7', 1)")
    return isinstance(answer, list)


def test_a_node_that_sleeps_past_its_expiry_is_not_waited_for_and_loses_nothing(node: Node, shop: Place):
    with SqlProcess(shop, expiry_ms=500) as process:
        # A machine that is too busy for such an expiry needs several attempts.
        wait_until(lambda: begins_with_a_row(process), "a transaction in one epoch")
        process.signal(signal.SIGSTOP)
        job_id = begin(node, UNIQUE)
        assert run(node, job_id, PATIENT_MS).status is JobStatus.SUCCEEDED
        process.signal(signal.SIGCONT)
        # It would have been a duplicate.
        assert process.run("commit") in ("40001", "23505")
    judge(node, JobId(job_id), JobStatus.SUCCEEDED)
