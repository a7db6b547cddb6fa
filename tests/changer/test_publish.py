"""`seachange.publish = manual`: a job does all of its work and waits in status `ready` until it is asked to publish."""

import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from tests.changer.changing import ROWS, UNIQUE, begin, run
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

MANUAL = "set seachange.publish = manual"
STATUS = "select status from seachange.jobs order by id desc limit 1"
INDEXES = "select count(*) from seachange.descriptors where name = 'item_code' and state = 'PUBLIC'"


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    node.jobs.paused = False
    with closing(Session(node)) as opened:
        opened.execute(MANUAL)
        yield opened


def ask(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(sql).rows]


def wait_for(session: Session, status: JobStatus) -> None:
    wait_until(lambda: ask(session, STATUS) == [(status.value,)], f"the job to be {status}")


def test_statement_returns_when_its_job_is_ready(session: Session):
    session.execute(UNIQUE)
    assert any("PUBLISH JOB 1" in notice for notice in session.notices)
    assert ask(session, STATUS) == [("ready",)]
    assert ask(session, INDEXES) == [(0,)]
    assert ask(session, "select * from seachange.changes where jobs is not null") == []
    # Writers keep the index up to date, and are checked by it.
    session.execute("insert into item values (1000, 'new', 1)")
    with pytest.raises(errors.UniqueViolation):
        session.execute("insert into item values (1001, 'new', 1)")
    session.execute("publish job 1")
    wait_for(session, JobStatus.SUCCEEDED)
    assert ask(session, INDEXES) == [(1,)]
    assert ask(session, "select id from item where code = 'new'") == [(1000,)]
    assert ask(session, "select count(*) from seachange.changes where jobs = '1'") == [(1,)]


def test_converted_rows_written_while_the_job_is_ready_are_published(session: Session):
    session.execute("alter table item alter column category type text using 'c' || category")
    session.execute("insert into item values (1000, 'new', 77)")
    session.execute("update item set category = 78 where id = 1")
    assert ask(session, "select category from item where id = 1000") == [(77,)]
    assert ask(session, "select seachange.publish_job(1)") == [(True,)]
    wait_for(session, JobStatus.SUCCEEDED)
    assert ask(session, "select id, category from item where id in (1, 2, 1000) order by id") == [
        (1, "c78"),
        (2, "c2"),
        (1000, "c77"),
    ]


def test_ready_job_can_be_cancelled(session: Session):
    session.execute(UNIQUE)
    session.execute("cancel job 1")
    wait_for(session, JobStatus.CANCELED)
    session.execute("insert into item select i + 5000, 'c1', 1 from generate_series(1, 2) g(i)")


def test_request_to_publish_may_come_before_the_job_is_ready(node: Node):
    job_id = begin(node, MANUAL, UNIQUE)
    with closing(Session(node)) as session:
        session.execute(f"publish job {job_id}")
    assert run(node, job_id).status is JobStatus.SUCCEEDED


def test_statement_of_two_changes_is_refused(session: Session):
    with pytest.raises(errors.FeatureNotSupported):
        session.execute("alter table item add column r double precision default random(), add unique (r)")
    session.execute("set seachange.publish = auto")
    session.execute("alter table item add column r double precision default random(), add unique (r)")
    assert ask(session, "select count(distinct r) from item") == [(ROWS,)]


def test_changes_without_a_job_and_blocks_are_published_by_their_commit(session: Session):
    session.execute("alter table item add column price int")
    session.execute("begin")
    session.execute("create index item_price on item (price)")
    session.execute("commit")
    assert ask(session, STATUS) == [("succeeded",)]


def test_requests_that_do_not_fit_are_refused(session: Session, node: Node):
    session.execute(UNIQUE)
    for request in ("pause", "resume"):
        with pytest.raises(errors.NotInPrerequisiteState):
            session.execute(f"{request} job 1")
    session.execute("publish job 1")
    wait_for(session, JobStatus.SUCCEEDED)
    with pytest.raises(errors.NotInPrerequisiteState):
        session.execute("publish job 1")
    node.jobs.paused = True
    plain = begin(node, "create index concurrently item_category on item (category)")
    with closing(Session(node)) as other, pytest.raises(errors.NotInPrerequisiteState):
        other.execute(f"publish job {plain}")


def test_ready_job_of_a_killed_node_is_published_by_another(shop: Place):
    with SqlProcess(shop, 500) as process:
        process.run(MANUAL)
        process.run(UNIQUE)
        process.signal(signal.SIGKILL)
        process.wait()
    with closing(open_node(shop.data, shop.catalog, name="survivor")) as node, closing(Session(node)) as session:
        assert ask(session, STATUS) == [("ready",)]
        session.execute("publish job 1")
        wait_for(session, JobStatus.SUCCEEDED)
        assert ask(session, INDEXES) == [(1,)]
