"""Work behind a server of Spark Connect: what comes of it is what comes of it elsewhere."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import seachange
from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.pipeline.spark.connect import ConnectApplication, start_connect
from seachange.pipeline.spark_options import SparkOptions
from seachange.verify.consistency import inspect
from tests.cluster.sqlprocess import SqlProcess
from tests.spark import flaky
from tests.spark.bench import Bench
from tests.spark.connect_server import ConnectServer
from tests.spark.flaky import Troubled
from tests.support.nodes import Place


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as started:
        yield started


@pytest.fixture(scope="module")
def remote(server: ConnectServer) -> Iterator[ConnectApplication]:
    cloudpickle.register_pickle_by_value(flaky)
    application = start_connect(SparkOptions(remote=server.url))
    yield application
    application.stop()
    cloudpickle.unregister_pickle_by_value(flaky)


def test_changes_are_carried_out_behind_the_server(server: ConnectServer, tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "seachange.toml").write_text(f'seachange.local_rows = 0\nseachange.spark.remote = "{server.url}"\n')
    with SqlProcess(Place(data)) as process:
        process.run("create table item (id int primary key, code text, n int)")
        process.run("insert into item select i, 'c' || (i * 7919 % 5003), i % 7 from generate_series(1, 5000) g(i)")
        assert process.run("create index by_code on item (code)") == []
        assert process.run("select id from item where code = 'c2916'") == [[1]]
        assert process.run("create unique index by_n on item (n)") == errors.UniqueViolation.sqlstate
    node = open_node(data)
    session = Session(node)
    told = session.execute("select count(*) from seachange.events where event like '%Spark application%sc://%'").rows
    assert told[0][0] >= 2
    assert not inspect(node).anomalies
    session.close()
    node.close()


@pytest.mark.parametrize("how", ["raise", "die"])
def test_an_attempt_that_fails_is_made_again(remote: ConnectApplication, tmp_path: Path, how: str):
    bench = Bench(tmp_path, remote)
    results = bench.run(Troubled(bench.marks, how))
    assert len(bench.attempts()) == 2
    assert {results[0][0], *bench.left, *bench.given_up} == set(bench.reserved)
    assert remote.is_alive


def test_an_error_of_the_data_is_not_tried_again(remote: ConnectApplication, tmp_path: Path):
    bench = Bench(tmp_path, remote)
    with pytest.raises(errors.DatabaseError) as problem:
        bench.run(Troubled(bench.marks, "refuse", failing=99))
    assert problem.value.sqlstate == errors.DivisionByZero.sqlstate
    assert len(bench.attempts()) == 1


def test_an_interrupt_reaches_tasks_that_run(remote: ConnectApplication, tmp_path: Path):
    bench = Bench(tmp_path, remote)
    bench.executor = replace(
        bench.executor, on_progress=lambda rows: bench.interrupts.set() if bench.attempts() else None
    )
    with pytest.raises(errors.QueryCanceled):
        bench.run(*[Troubled(bench.marks, "hang", failing=99)] * 3)
    assert len(bench.attempts()) <= 3


def test_as_many_tasks_run_as_the_server_has_room_for(remote: ConnectApplication):
    assert remote.slots == 2


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(errors.SparkFailed, match=r"sc://127\.0\.0\.1:1"):
        start_connect(SparkOptions(remote="sc://127.0.0.1:1"))


def test_the_data_source_works_behind_the_server(remote: ConnectApplication, tmp_path: Path):
    """A task that is killed in the middle of a write is repeated, and its rows are there once."""
    data, failed = str(tmp_path / "data"), tmp_path / "failed"

    def fail_once(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield batch
            if not failed.exists() and 3 in batch.column(0).to_pylist():
                failed.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    spark = remote._session
    with seachange.connect(data=data, autocommit=True) as db:
        db.execute("create table t (id bigint primary key, w text default 'none')")
        rows = spark.range(0, 1_000, 1, 2).mapInArrow(fail_once, "id bigint")
        rows.write.format("seachange").option("data", data).mode("append").save("t")
        assert failed.exists()
        assert db.execute("select count(*), count(distinct id) from t").fetchall() == [(1_000, 1_000)]
        assert not list((tmp_path / "data" / "spool").iterdir())
        shown = spark.read.format("seachange").option("data", data).load("t")
        assert shown.where("id < 3").toArrow().to_pylist() == [{"id": i, "w": "none"} for i in range(3)]
        with pytest.raises(Exception, match="42P01"):
            spark.read.format("seachange").option("data", data).load("missing").schema  # noqa: B018 - it is asked for
