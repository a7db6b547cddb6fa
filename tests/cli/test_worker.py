"""`seachange worker`: continues orphaned jobs, prints their steps, and stops at a signal."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import seachange
from seachange.cli.main import main
from seachange.engine.session.session import Session
from tests.changer.changing import begin
from tests.cluster.sqlprocess import REPOSITORY, SqlProcess
from tests.schemachange.world import open_quiet
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until


def start(data: Path, *options: str, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "seachange.cli.main", "worker", "--data", str(data), *options]
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if environment else None,
        text=True,
        env={**os.environ, **environment},
    )


def status_of(cursor: seachange.Cursor, job: int) -> str:
    cursor.execute("select status from seachange.jobs where id = %s", (job,))
    ((status,),) = cursor.fetchall()
    return str(status)


def test_it_finishes_a_job_and_stops_cleanly(tmp_path: Path):
    with seachange.connect(str(tmp_path)) as db:
        db.cursor().execute("create table item (id int primary key, code text)")
        db.cursor().execute("insert into item select i, 'c' || i from generate_series(1, 100) g(i)")
        db.commit()
    with SqlProcess(Place(tmp_path), 500, "job.raised") as process:
        process.send("create unique index item_code on item (code)")
        assert process.wait() == -signal.SIGKILL
    with start(tmp_path) as worker:
        assert worker.stdout is not None
        heard: list[str] = []
        while not heard or "succeeded" not in heard[-1]:
            heard.append(worker.stdout.readline())
            assert heard[-1], heard
        worker.send_signal(signal.SIGTERM)
        assert "stops" in worker.stdout.read()
        assert worker.wait(PATIENCE_S) == 0
    assert heard[0].endswith("is ready\n")
    assert any("job 1: running" in line for line in heard)
    with seachange.connect(str(tmp_path)) as db:
        cursor = db.cursor()
        cursor.execute("select status, progress from seachange.jobs")
        assert cursor.fetchall() == [("succeeded", 1.0)]
        # No process of the worker is left.
        cursor.execute("select count(*) from seachange.nodes where live")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize(("stage", "number"), [("drain", signal.SIGTERM), ("backfill", signal.SIGINT)])
def test_it_stops_in_the_middle_of_a_job_and_leaves_the_rest_to_others(tmp_path: Path, stage: str, number: int):
    limits = tmp_path / "seachange.toml"
    if stage == "backfill":
        limits.write_text('seachange.pipeline_bytes_per_second = "1kB"\n')
    with closing(open_quiet(Place(tmp_path), "quiet")) as node, closing(Session(node)) as session:
        node.parts.inline_rows_max = 0
        session.execute("create table item (id int primary key, code text)")
        for first in (1, 9_001):
            rows = f"generate_series({first}, {first + 8_999}) g(i)"
            session.execute(f"insert into item select i, 'c' || i from {rows}")
        session.execute("begin")
        if stage == "drain":
            session.execute("insert into item values (0, 'open')")
        with closing(open_quiet(Place(tmp_path), "gone")) as gone:
            begin(gone, "set seachange.drain_timeout = '100s'", "alter table concurrently item add unique (code)")
        with start(tmp_path) as worker:
            assert worker.stdout is not None
            while f", {stage}, " not in (line := worker.stdout.readline()):
                assert line
            worker.send_signal(number)
            assert "stops" in worker.stdout.read()
            assert worker.wait(PATIENCE_S) == 0
        session.execute("commit")
        assert [tuple(row) for row in session.execute("select status, stage from seachange.jobs").rows] == [
            ("running", stage)
        ]
    limits.unlink(missing_ok=True)
    with start(tmp_path) as other:
        assert other.stdout is not None
        while "succeeded" not in (line := other.stdout.readline()):
            assert line
        other.terminate()
        assert other.wait(PATIENCE_S) == 0


def test_worker_runs_jobs_left_by_sessions(tmp_path: Path):
    (tmp_path / "seachange.toml").write_text('[seachange]\nworker = "off"\n')
    with seachange.connect(str(tmp_path)) as db:
        db.autocommit = True
        cursor = db.cursor()
        cursor.execute("create table item (id int primary key, code text)")
        cursor.execute("insert into item select i, 'c' || i from generate_series(1, 100) g(i)")
        with SqlProcess(Place(tmp_path), 500, "job.raised") as process:
            process.send("create unique index item_code on item (code)")
            assert process.wait() == -signal.SIGKILL
        # Jobs of its own sessions run here even if no session waits for them; the other job would have come first.
        cursor.execute("set seachange.concurrently = 'async'")
        cursor.execute("create table other (id int primary key)")
        cursor.execute("insert into other values (1)")
        cursor.execute("create index concurrently other_id on other (id)")
        while status_of(cursor, 2) != "succeeded":
            pass
        with start(tmp_path) as worker:
            assert worker.stdout is not None
            name = worker.stdout.readline().split()[1]
            while "job 1: succeeded" not in (line := worker.stdout.readline()):
                assert line
            cursor.execute("select id, node = %s from seachange.jobs order by id", (name,))
            assert cursor.fetchall() == [(1, True), (2, False)]
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0


def test_worker_help(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["worker", "--help"])
    assert "seachange worker --data" in capsys.readouterr().out


def test_it_says_why_spark_does_not_start_and_works_without(tmp_path: Path):
    with start(tmp_path / "data", "--warm", JAVA_HOME=str(tmp_path)) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline().endswith("is ready\n")
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0
    assert "0A000: Spark cannot be used" in said
    assert f"JAVA_HOME is {tmp_path}" in said


# A JVM that does nothing but to end when its input does, as Spark's.
HANGING = """#!/bin/sh
echo $$ > "$0.pid"
exec cat > /dev/null
"""


def test_it_ends_while_spark_hangs_that_it_has_begun_to_start(tmp_path: Path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(HANGING)
    java.chmod(0o755)
    pid = java.with_name("java.pid")
    with start(tmp_path / "data", "--warm", JAVA_HOME=str(tmp_path)) as worker:
        number = wait_until(lambda: pid.exists() and pid.read_text().strip(), "Spark to start")
        worker.send_signal(signal.SIGTERM)
        heard, _ = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0
    assert heard.endswith("stops\n")
    assert "ready" not in heard
    wait_until(lambda: not Path("/proc", number).exists(), "the JVM to end")
