"""Who waits for whom, and who must not."""

import threading

import pytest

from seachange import errors
from tests.scenarios.scenario import CREATED, Action, Scenario
from tests.support.workers import wait_until


def test_a_change_does_not_wait_for_its_own_version(db: Scenario):
    """CockroachDB #172970: an internal retry read the version that it had just published, and waited for ever."""
    session = db.session()
    session.execute("set statement_timeout = '10min'")
    session.execute("begin")
    session.execute("alter table item add column more int default 1")
    session.execute("update item set more = 2 where id = 1")
    db.run("update item set n = 0 where id = 2")
    session.execute("commit")
    session.execute("create index item_more on item (more)")
    session.execute("alter table item drop column more cascade")
    db.judge()


def test_what_creates_no_job_is_safe_for_open_transactions(db: Scenario):
    """CockroachDB #90600: DDL without a job did not wait for leases. Here it need not: a late
    transaction is fenced and rebased."""
    assert db.change("create index concurrently item_n on item (n)") == ""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'x', 0, 1)")
    db.run("drop index item_n")
    db.run("alter table item drop column n")
    db.run("alter table item alter column code set default 'none'")
    session.execute("commit")
    db.judge()


def test_a_foreign_key_waits_for_writers_of_the_parent_too(db: Scenario):
    """CockroachDB PR #54434: DDL on one object must wait for leases on the objects that it refers to."""
    db.run("create table child (id int primary key, item int)")
    db.run("insert into child values (1, 1)")
    session = db.session()
    session.execute("begin")
    session.execute("delete from item where id = 1")
    job_id = db.begin("alter table concurrently child add foreign key (item) references item")
    waiting: list[str] = []

    def finish() -> None:
        waiting.append(db.finish(job_id, drain_ms=60_000))

    thread = threading.Thread(target=finish)
    thread.start()
    try:
        wait_until(lambda: db.run("select 1 from seachange.jobs where waiting_for is not null"), "the change to wait")
    finally:
        session.execute("commit")
        thread.join()
    assert waiting == ["23503"]
    db.judge()


def test_a_parent_deleted_by_one_who_did_not_know_of_the_foreign_key(db: Scenario):
    """The same where the writer is late: it is refused, and no child is an orphan."""
    db.run("create table child (id int primary key, item int)")
    db.run("insert into child values (1, 1)")
    session = db.session()
    session.execute("begin")
    session.execute("delete from item where id = 1")
    assert db.change("alter table concurrently child add foreign key (item) references item") == ""
    with pytest.raises(errors.Error) as caught:
        session.execute("commit")
    assert caught.value.sqlstate in ("23503", "40001")
    db.judge()


def test_a_change_that_is_queued_does_not_answer_before_it_was_made(db: Scenario):
    """CockroachDB #15038: of two changes that were queued together the second returned success before it ran."""
    job_id = db.begin("create index concurrently item_n on item (n)")
    session = db.session()
    answered = threading.Event()

    def queue() -> None:
        session.execute("alter table item add column more int default 5")
        answered.set()

    thread = threading.Thread(target=queue)
    thread.start()
    wait_until(lambda: session.notices, "the second to be behind the first")
    assert not answered.is_set()
    assert db.refuse("select more from item") == "42703"
    assert db.finish(job_id) == ""
    thread.join()
    assert db.run("select distinct more from item") == [(5,)]


def test_explaining_a_change_changes_nothing(db: Scenario):
    """CockroachDB #118897: EXPLAIN of DDL had side effects."""
    before = db.run("select * from seachange.descriptors"), db.node.parts.catalog.jobs(), db.node.epoch.catch_up()
    for options in ("ddl", "ddl, verbose", "ddl, shape", "ddl, viz", "ddl, deps"):
        db.run(f"explain ({options}) alter table item add column more int unique, drop column n")
        db.run(f"explain ({options}) create unique index on item (code)")
    after = db.run("select * from seachange.descriptors"), db.node.parts.catalog.jobs(), db.node.epoch.catch_up()
    assert after == before


def test_no_node_keeps_a_version_that_was_reverted(db: Scenario):
    """CockroachDB #47712: the rollback of a change never ended. Writers of every version that there was commit."""
    sessions = [db.session() for _ in range(3)]

    def begin(number: int) -> None:
        sessions[number].execute("begin")
        sessions[number].execute(f"insert into item values ({1_000 + number}, 'x{number}', {-1 - number}, 0)")

    begin(0)
    statement = "create unique index concurrently item_category on item (category)"
    moments: dict[str, Action] = {CREATED: lambda: begin(1), "job.attached": lambda: begin(2)}
    assert db.change(statement, moments) == "23505"
    for session in sessions:
        session.execute("commit")
    assert db.run("select count(*) from item where id >= 1000") == [(3,)]
    db.judge()
