"""`seachange worker`: goes on with what was left behind, says so, and ends when it is told to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import seachange
from seachange.cli.main import main
from tests.cluster.sqlprocess import REPOSITORY, SqlProcess
from tests.support.nodes import Place


def start(data: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "seachange.cli.main", "worker", "--data", str(data)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, env={**os.environ})


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
        assert worker.wait(30) == 0
    assert heard[0].endswith("is ready\n")
    assert any("job 1: running" in line for line in heard)
    with seachange.connect(str(tmp_path)) as db:
        cursor = db.cursor()
        cursor.execute("select status, progress from seachange.jobs")
        assert cursor.fetchall() == [("succeeded", 1.0)]
        # Nobody is left of the worker.
        cursor.execute("select count(*) from seachange.nodes where live")
        assert cursor.fetchall() == [(1,)]


def test_it_says_how_it_is_used(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["worker", "--help"])
    assert "seachange worker --data" in capsys.readouterr().out
