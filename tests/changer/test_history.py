"""The history of schema changes: what `seachange.changes` says of them, and that it has those that were published."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from seachange.catalog.rows import CHANGES_KEPT_MAX, EVENTS_KEPT_US
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from tests.changer.changing import BROKEN, ROWS, UNIQUE, begin, run
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place
from tests.support.workers import wait_until

STATEMENTS = "select statement from seachange.changes where statement not like 'create table%' order by id"
EXPIRY_MS = 500


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as opened:
        yield opened


def ask(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(sql).rows]


def history(session: Session) -> list[str]:
    return [text for (text,) in ask(session, STATEMENTS)]


def test_change_without_a_job_is_recorded_by_its_commit(session: Session):
    session.execute("alter table item add column price int")
    facts = "role, objects, jobs, strategy, rows, bytes, waits, duration_ms >= 0, began <= published, undo_bytes"
    ((id_, *row),) = ask(session, f"select id, {facts} from seachange.changes where statement like 'alter%'")
    assert row == ["seachange", "table public.item 1 -> 2", None, "metadata only", 0, 0, 0, True, True, 0]
    session.execute(f"set seachange.as_of = {id_ - 1}")
    assert len(ask(session, "select * from item where id = 1")[0]) == 3
    session.execute(f"set seachange.as_of = {id_}")
    assert len(ask(session, "select * from item where id = 1")[0]) == 4


def test_job_is_recorded_by_its_publication(node: Node, session: Session):
    job_id = begin(node, UNIQUE)
    assert history(session) == []
    run(node, job_id)
    assert history(session) == [UNIQUE]
    pairs = "estimated_rows, rows, estimated_waits, waits, jobs, strategy"
    ((*row,),) = ask(session, f"select {pairs} from seachange.changes where jobs is not null")
    # The backfill and the validation read every row.
    assert row == [2 * ROWS, 2 * ROWS, 2, 2, str(job_id), "build index"]
    index = "select sum(size_bytes) from seachange.segments where index_name = 'item_code' and is_base"
    assert ask(session, "select bytes from seachange.changes where jobs is not null") == ask(session, index)
    times = "estimated_bytes > 0, estimated_ms >= 0, duration_ms >= waited_ms, undoable_until > published"
    assert ask(session, f"select {times} from seachange.changes where jobs is not null") == [(True,) * 4]


def test_failed_and_cancelled_changes_are_not_recorded(node: Node, session: Session):
    assert run(node, begin(node, BROKEN)).status is JobStatus.FAILED
    job_id = begin(node, UNIQUE)
    session.execute(f"cancel job {job_id}")
    assert run(node, job_id).status is JobStatus.CANCELED
    session.execute("begin")
    session.execute("alter table item add column gone int")
    session.execute("rollback")
    assert history(session) == []


def test_block_is_one_change(node: Node, session: Session):
    node.jobs.paused = False
    session.execute("begin")
    session.execute("alter table item rename code to name")
    session.execute("savepoint s")
    session.execute("comment on table item is 'undone'")
    session.execute("rollback to s")
    session.execute("create index item_name on item (name)")
    session.execute("drop table other")
    session.execute("commit")
    assert history(session) == [
        "alter table item rename code to name; create index item_name on item (name); drop table other"
    ]
    ((objects, strategy, rows, job, undo_bytes),) = ask(
        session, "select objects, strategy, rows, jobs, undo_bytes from seachange.changes where statement like '%;%'"
    )
    assert "table public.other (dropped)" in objects
    assert (strategy, rows, job) == ("build index", ROWS, "1")
    # The rows of the dropped table, which UNDROP TABLE brings back.
    assert undo_bytes > 0


def test_changes_that_no_session_would_look_for_are_left_out(session: Session):
    session.execute("create temporary table note (id int)")
    session.execute("create table if not exists item (id int)")
    session.execute("create role guest")
    assert history(session) == []
    session.execute("begin")
    session.execute("alter table item add column a int")
    session.execute("create role other_guest")
    session.execute("create temporary table note_2 (id int)")
    session.execute("commit")
    (objects,) = ask(session, "select objects from seachange.changes where statement like 'alter%'")[0]
    assert objects == "table public.item 1 -> 2"


def test_roles_see_their_own_changes_and_those_of_objects_that_they_may_use(node: Node, session: Session):
    session.execute("create role guest login")
    session.execute("create role other_guest login")
    session.execute("alter table item add column a int")
    session.execute("alter table other add column b int")
    session.execute("grant select on item to guest")
    session.execute("grant create on schema public to guest")
    session.execute("set role guest")
    session.execute("create table own (id int)")
    # The text of statements is for superusers.
    assert set(ask(session, "select statement from seachange.changes")) == {("<insufficient privilege>",)}
    seen = [text for (text,) in ask(session, "select objects from seachange.changes")]
    assert any("item" in text for text in seen)
    assert any("own" in text for text in seen)
    assert not any("other" in text for text in seen)
    session.execute("reset role")
    session.execute("set role other_guest")
    assert [text for (text,) in ask(session, "select objects from seachange.changes") if "schema" not in text] == []


def test_history_is_limited_in_number_and_age(node: Node, shop: Place, session: Session):
    session.execute("alter table item add column a int")
    catalog = node.parts.catalog
    known = [change.id for change in catalog.changes()]
    node.collect_garbage()
    assert [change.id for change in catalog.changes()] == known
    many = f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {CHANGES_KEPT_MAX})"
    first = "(select timestamp_us, body from change order by seq limit 1) as first"
    _run_in_catalog(shop, f"{many} insert into change select -i, timestamp_us, body from n, {first}")
    node.collect_garbage()
    kept = [change.id for change in catalog.changes()]
    assert len(kept) == CHANGES_KEPT_MAX
    assert kept[-len(known) :] == known
    _run_in_catalog(shop, f"update change set timestamp_us = timestamp_us - {EVENTS_KEPT_US} where seq < 0")
    node.collect_garbage()
    assert [change.id for change in catalog.changes()] == known


def _run_in_catalog(place: Place, sql: str) -> None:
    if place.catalog:
        with psycopg.connect(place.catalog, options="-c search_path=seachange") as server:
            server.execute(sql.encode())
        return
    with closing(sqlite3.connect(place.data / "catalog.sqlite")) as file, file:
        file.execute(sql)


@pytest.mark.parametrize(
    ("fault", "statement", "is_recorded"),
    [
        ("job.validated", UNIQUE, False),
        ("job.published:2", UNIQUE, True),
        ("commit.written", "alter table item add column a int", False),
        ("commit.decided", "alter table item add column a int", True),
    ],
)
def test_kill_at_the_publication_leaves_a_record_of_what_was_published(
    shop: Place, fault: str, statement: str, is_recorded: bool
):
    if fault == "commit.written" and shop.catalog:
        pytest.skip("it lies inside the server of PostgreSQL")
    with SqlProcess(shop, EXPIRY_MS) as process:
        process.run("select count(*) from item")
        process.arm(fault)
        process.send(statement)
        assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
    node = open_node(shop.data, shop.catalog, name="survivor")
    node.jobs.paused = True
    with closing(node), closing(Session(node)) as session:
        assert history(session) == [statement] * is_recorded
        # A change that was not published is resumed, and recorded then.
        node.jobs.paused = False
        wait_until(lambda: not node.parts.catalog.jobs(unfinished=True), "the survivor to finish the job")
        is_resumed = statement == UNIQUE
        assert history(session) == [statement] * (is_recorded or is_resumed)
