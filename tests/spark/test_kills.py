"""Processes that take part are killed in the middle of a backfill; what is done stays done, and the rest goes on. In a
transaction block too, unless it is the block's own process."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange.changer.job import read_job
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.pipeline.spark.host import Application
from seachange.verify.consistency import inspect
from tests.cluster.sqlprocess import SqlProcess
from tests.spark.cluster import StandaloneCluster
from tests.spark.conftest import MASTER
from tests.support.nodes import Place
from tests.support.workers import wait_until

FILES = 6
ROWS = 6_000
INDEX = "create index by_code on item (code)"
# A job of its own, and the change of a block with rows of its own.
SCRIPTS = {
    "job": [INDEX],
    "block": [
        "begin",
        "delete from item where id = 0",
        f"insert into item values ({FILES * ROWS}, 'own')",
        INDEX,
        f"update item set code = 'later' where id = {FILES * ROWS}",
        "commit",
    ],
}
_BEGUN = re.compile(r"sends (\d+) tasks? to Spark application .*: read")


def prepare(data: Path, master: str, options: str = "") -> None:
    """A table of several files, each of which is a unit, whose index is built on Spark."""
    data.mkdir(exist_ok=True)
    (data / "seachange.toml").write_text(
        f"seachange.local_rows = 0\nseachange.pipeline_unit_rows = {ROWS}\n"
        f'seachange.spark.master = "{master}"\nseachange.spark.executor_memory = "512m"\n'
        f'seachange.spark.driver_memory = "512m"\nseachange.spark.options = "{options}"\n'
    )
    node = open_node(data)
    node.maintenance.paused = True
    session = Session(node)
    session.execute("create table item (id int primary key, code text)")
    for n in range(FILES):
        rows = f"generate_series({n * ROWS}, {(n + 1) * ROWS - 1}) g(i)"
        session.execute(f"insert into item select i, 'c' || (i * 7919 % 100003) from {rows}")
    session.close()
    node.close()


def reading(node: Node) -> list[int]:
    """How many tasks there were to read rows, each time that it was begun."""
    return [int(found.group(1)) for event in node.parts.catalog.events() if (found := _BEGUN.match(event.text))]


def judge(node: Node) -> None:
    record = node.parts.catalog.job(JobId(1))
    assert record is not None
    assert record.status is JobStatus.SUCCEEDED
    assert not inspect(node).anomalies
    session = Session(node)
    assert session.execute("select count(*) from item where code >= ''").rows == [(FILES * ROWS,)]
    session.close()


def test_a_killed_driver_leaves_what_is_done(tmp_path: Path, application: Application) -> None:
    """The JVM of the driver that was killed ends with it; another process goes on."""
    data = tmp_path / "data"
    prepare(data, MASTER)
    with SqlProcess(Place(data), 500, "job.unit:3") as process:
        process.send(INDEX)
        assert process.wait() == -signal.SIGKILL
    node = open_node(data, name="survivor")
    try:
        wait_until(lambda: not node.parts.catalog.jobs(unfinished=True), "the survivor to finish the job")
        # On a busy machine the first process may have begun twice.
        assert reading(node)[0] == FILES
        assert reading(node)[-1] == FILES - 3
        judge(node)
    finally:
        node.close()


def test_a_killed_driver_of_a_block_leaves_nothing(tmp_path: Path, application: Application) -> None:
    data = tmp_path / "data"
    prepare(data, MASTER)
    with SqlProcess(Place(data), 500, "job.unit:3") as process:
        for statement in SCRIPTS["block"]:
            process.send(statement)
        assert process.wait() == -signal.SIGKILL
    node = open_node(data, name="survivor")
    try:
        session = Session(node)
        session.execute(INDEX)
        assert session.execute("select count(*), max(id) from item").rows == [(FILES * ROWS, FILES * ROWS - 1)]
        assert not node.parts.catalog.jobs(unfinished=True)
        session.close()
        assert not inspect(node).anomalies
    finally:
        node.close()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_jvm_that_is_killed_is_started_again(script: str, tmp_path: Path) -> None:
    """The statement does not notice: it goes on from the units that are done."""
    data = tmp_path / "data"
    prepare(data, MASTER)
    node = open_node(data, name="watcher")
    node.jobs.paused = True
    try:
        with SqlProcess(Place(data)) as process:
            for statement in SCRIPTS[script]:
                process.send(statement)
            wait_until(lambda: units(node), "the first unit to be kept")
            (jvm,) = [child for child in children(process.pid) if b"java" in command(child)]
            os.kill(jvm, signal.SIGKILL)
            assert [process.hear() for _ in SCRIPTS[script]] == [[] for _ in SCRIPTS[script]]
        first, second = reading(node)
        assert first == FILES
        assert second < FILES
        judge(node)
    finally:
        node.close()


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for listed in found for child in listed.read_text().split()]


def command(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def units(node: Node) -> int:
    """How many are on record."""
    record = node.parts.catalog.job(JobId(1))
    return len(read_job(record).units) if record is not None else 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    made = StandaloneCluster(tmp_path, 2)
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_worker_of_a_cluster_is_killed(script: str, cluster: StandaloneCluster, tmp_path: Path) -> None:
    data = tmp_path / "data"
    prepare(data, cluster.master, "spark.driver.host=127.0.0.1 spark.driver.bindAddress=127.0.0.1")
    cluster.wait(2)
    node = open_node(data, name="watcher")
    node.jobs.paused = True
    try:
        with SqlProcess(Place(data)) as process:
            for statement in SCRIPTS[script]:
                process.send(statement)
            wait_until(lambda: units(node), "the first unit to be kept")
            cluster.kill_worker(0)
            assert [process.hear() for _ in SCRIPTS[script]] == [[] for _ in SCRIPTS[script]]
        assert reading(node) == [FILES]
        judge(node)
    finally:
        node.close()
