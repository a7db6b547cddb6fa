"""Spark runs a task twice, and both attempts end: what comes of one of them counts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.verify.consistency import inspect
from tests.spark import speculating
from tests.spark.cluster import StandaloneCluster
from tests.spark.speculating import ROWS

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    # A second attempt is made on another machine only.
    made = StandaloneCluster(tmp_path, 2, hosts=("127.0.0.1", "127.0.0.2"))
    yield made
    made.end()


def test_every_row_is_there_once(cluster: StandaloneCluster, tmp_path: Path) -> None:
    marks, data = tmp_path / "marks", tmp_path / "data"
    marks.mkdir()
    cluster.wait(2)
    program = [sys.executable, "-m", speculating.__name__, cluster.master, str(data), str(marks)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    ended = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert ended.stdout.split() == [str(ROWS)] * 3, ended.stderr[-3_000:]
    attempts = [mark.name.partition("-")[0] for mark in marks.iterdir()]
    assert attempts.count("partition") == 2
    assert attempts.count("unit") >= 2
    node = open_node(data)
    try:
        assert not inspect(node).anomalies
    finally:
        node.close()
