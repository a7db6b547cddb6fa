"""Schema changes on Spark over an object store: its Python workers read and write through the shared cache."""

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

import seachange
from seachange.pipeline.spark.host import HOST
from tests.support.s3 import S3Server, environment


@pytest.fixture
def url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Workers get the environment that Spark was started with, so one that runs already is stopped."""
    HOST.stop()
    for name, value in environment(s3_server.port).items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.create_bucket()}/shop"


@pytest.mark.slow
def test_column_is_rewritten_by_tasks_of_spark(url: str, tmp_path: Path):
    with closing(seachange.connect(url, local=tmp_path / "local", autocommit=True)) as connection:
        connection.execute("create table t (id bigint primary key, v text)")
        connection.execute("insert into t select x, 'v' || x from generate_series(1, 60000) s(x)")
        connection.execute("set seachange.local_rows = 0")
        connection.execute("set seachange.spark.master = 'local[2]'")
        connection.execute("set seachange.pipeline_unit_rows = 20000")
        connection.execute("alter table t alter column v type varchar(20) using v || '!'")
        assert connection.execute("select count(*), max(v) from t").fetchall() == [(60_000, "v9999!")]
        events = connection.execute("select event from seachange.events").fetchall()
    assert any("Spark" in event for (event,) in events)
