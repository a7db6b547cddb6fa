"""A process that runs a job is stopped past its expiry, another finishes the job, and the first resumes."""

import fcntl
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.model.jobs import JobStatus
from tests.changer.changing import BROKEN, UNIQUE, judge, prepare
from tests.cluster.sqlprocess import SqlProcess
from tests.support.databases import MakePlace
from tests.support.nodes import Place
from tests.support.workers import wait_until

EXPIRY_MS = 500
TRIES = 10
# Each is before a commit that the sleeper would make next.
CASES = [
    (UNIQUE, "job.built"),
    (BROKEN, "job.built"),
    pytest.param(UNIQUE, "job.drained", marks=pytest.mark.slow),
    pytest.param(UNIQUE, "job.validated", marks=pytest.mark.slow),
    pytest.param(UNIQUE, "job.published:2", marks=pytest.mark.slow),
]


def is_over(node: Node) -> bool:
    return bool(node.parts.catalog.jobs()) and not node.parts.catalog.jobs(unfinished=True)


def holds_no_lock(place: Place) -> bool:
    """A process that is stopped while one of its threads writes to SQLite blocks all writers of the machine."""
    for path in place.data.glob("*-lock*"):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True


@contextmanager
def sleeping(make: MakePlace, sql: str, point: str) -> Iterator[tuple[SqlProcess, Place]]:
    """A process that stopped at a point of its job, and its database."""
    name, _, occurrence = point.partition(":")
    for number in range(TRIES):
        place = make(f"try{number}", prepare)
        with SqlProcess(place, EXPIRY_MS, f"{name}:{occurrence or 1}:stop") as process:
            process.send(sql)
            wait_until(lambda: process.is_stopped, "the process to stop")
            if holds_no_lock(place):
                yield process, place
                return
    raise AssertionError(f"in {TRIES} tries it never stopped without a lock")


@pytest.mark.parametrize(("sql", "point"), CASES)
def test_resumed_process_publishes_nothing_and_reports_the_outcome(place_for: MakePlace, sql: str, point: str):
    with sleeping(place_for, sql, point) as (sleeper, place):
        survivor = open_node(place.data, place.catalog, name="survivor")
        try:
            wait_until(lambda: is_over(survivor), "the survivor to finish the job")
            before = versions(survivor)
            sleeper.signal(signal.SIGCONT)
            assert sleeper.hear() == ([] if sql == UNIQUE else "23505")
            if sql == UNIQUE:
                judge(survivor, 1, JobStatus.SUCCEEDED)
            else:
                judge(survivor, 1, JobStatus.FAILED, "item_category")
            assert versions(survivor) == before
        finally:
            survivor.close()


def versions(node: Node) -> tuple[int, int]:
    """Of the table, and of the record of the job."""
    node.epoch.catch_up()
    (record,) = node.parts.catalog.jobs()
    return node.epoch.schemas.newest.within().by_name["public", "item"].version, record.revision


def test_new_session_sees_the_job_of_a_killed_one(shop: Place):
    with SqlProcess(shop, EXPIRY_MS, "job.unit") as process:
        process.send("create unique index item_code on item (code)")
        assert process.wait() == -signal.SIGKILL
    with SqlProcess(shop, EXPIRY_MS) as process:
        shown = "select statement, status from seachange.jobs"
        wait_until(lambda: process.run(shown)[0][1] == "succeeded", "its node to finish the job")
        assert process.run(shown) == [["create unique index item_code on item (code)", "succeeded"]]
        assert process.run("insert into item values (9001, 'c7', 1)") == "23505"
