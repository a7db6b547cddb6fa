"""A table that is changed, and how a test runs the jobs that follow."""

import threading
from collections.abc import Callable
from typing import Any

from seachange.changer.job import Job, read_job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.verify.consistency import inspect
from tests.support.nodes import Place

UNIQUE = "create unique index concurrently item_code on item (code)"
# Every category has several rows.
BROKEN = "create unique index concurrently item_category on item (category)"
ROWS = 500


def prepare(place: Place) -> None:
    node = open_node(place.data, place.catalog)
    session = Session(node)
    session.execute("create table item (id int primary key, code text, category int)")
    session.execute(f"insert into item select i, 'c' || i, i % 7 from generate_series(1, {ROWS}) g(i)")
    session.execute("create table other (id int primary key, code text)")
    session.execute("insert into other select i, 'c' || i from generate_series(1, 50) g(i)")
    session.close()
    node.close()


def begin(node: Node, *statements: str) -> JobId:
    """Runs statements, of which the last starts a job that the test runs."""
    session = Session(node)
    for statement in ("set seachange.concurrently = 'async'", *statements):
        rows = session.execute(statement).rows
    ((job_id,),) = rows
    session.close()
    return JobId(job_id)


def run(node: Node, job_id: JobId, drain_ms: int = 200) -> Job:
    """Runs a job to its end, or to a pause, in this thread."""
    never = threading.Event()

    def pause(seconds: float) -> None:
        never.wait(seconds)

    conditions = Conditions(pause, SessionInterrupts(), lambda job: None, drain_ms)
    with node.jobs.holding(job_id):
        return node.jobs.run(job_id, conditions)


def run_between(node: Node, job_id: JobId, between: Callable[[str], object], drain_ms: int = 100) -> Job:
    """The same; `between` is called before each stage with the name of what is done next."""
    record = node.parts.catalog.job(job_id)
    assert record is not None
    last = read_job(record).stage
    between(last)
    never = threading.Event()

    def pause(seconds: float) -> None:
        never.wait(seconds)

    def told(job: Job) -> None:
        nonlocal last
        if (stage := job.stage) != last:
            last = stage
            between(stage)

    with node.jobs.holding(job_id):
        return node.jobs.run(job_id, Conditions(pause, SessionInterrupts(), told, drain_ms))


def indexes(node: Node) -> dict[str, str]:
    """The indexes of the table, with their states."""
    node.epoch.catch_up()
    table = node.epoch.schemas.newest.within().by_name["public", "item"]
    return {index.name: index.state.value for index in table.indexes}


def ask(node: Node, sql: str) -> list[tuple[Any, ...]]:
    session = Session(node)
    try:
        return list(session.execute(sql).rows)
    finally:
        session.close()


def judge(node: Node, job_id: int, status: JobStatus, name: str = "item_code") -> None:
    """The job has ended with this status, its index exists or not, the data is consistent, and no garbage is left."""
    record = node.parts.catalog.job(JobId(job_id))
    assert record is not None
    assert record.status is status
    expected = {"item_pkey": "PUBLIC", **({name: "PUBLIC"} if status is JobStatus.SUCCEEDED else {})}
    assert indexes(node) == expected
    assert not inspect(node).anomalies
    assert ask(node, "select count(*) from item where code = 'c7'") == [(1,)]
