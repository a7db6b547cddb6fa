"""Exports of a database in an object store are read from there."""

from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from seachange.runtime.location import find_location
from tests.iceberg.reading import in_order, open_lake
from tests.iceberg.test_exports import ShiftedClock
from tests.iceberg.test_intervals import HOUR_US
from tests.support.s3 import S3Server, environment, fault_proxy

from pyiceberg.table import StaticTable  # isort: skip


def test_export_that_fails_is_an_event_and_is_made_later(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with fault_proxy(s3_server) as proxy:
        for name, value in environment(proxy.port).items():
            monkeypatch.setenv(name, value)
        with open_lake(find_location(f"s3://{s3_server.create_bucket()}/shop", tmp_path / "local")) as lake:
            clock = ShiftedClock(lake)
            lake.run("create table t (id bigint primary key)", "alter table t set (seachange.iceberg = on)")
            proxy.faults.add("expire", "PUT", 1)
            lake.node.exports.export_due(lake.node.epoch)
            events = [text for (text,) in lake.session.execute("select event from seachange.events").rows]
            (event,) = [text for text in events if "was not exported" in text]
            assert "public.t" in event
            assert "the credentials have expired" in event
            assert lake.node.parts.catalog.exports() == ()
            clock.ahead_us += HOUR_US
            lake.node.exports.export_due(lake.node.epoch)
            assert len(lake.node.parts.catalog.exports()) == 1


def test_metadata_and_segments_are_read_from_the_store(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    settings = environment(s3_server.port)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    properties = {
        "s3.endpoint": f"http://127.0.0.1:{s3_server.port}",
        "s3.access-key-id": settings["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": settings["AWS_SECRET_ACCESS_KEY"],
        "s3.region": "us-east-1",
    }
    location = find_location(f"s3://{s3_server.create_bucket()}/shop", tmp_path / "local")
    with open_lake(location) as lake:
        lake.run("create table t (id bigint primary key, s text)")
        lake.run("insert into t select i, 'x' || i from generate_series(1, 6000) i", "delete from t where id < 50")
        lake.run("insert into t values (9000, 'inline')")
        for _ in range(2):
            exported = lake.export()
            assert exported.address.startswith("s3://")
            table = StaticTable.from_metadata(exported.address, properties)
            assert in_order(table.scan().to_arrow().to_pylist()) == lake.sql()
            lake.run("update t set s = 'changed' where id % 100 = 0")
        # What was written is not kept on this machine: another node may delete it.
        local = [path.name for path in (tmp_path / "local" / "cache").rglob("*") if path.is_file()]
        assert not [name for name in local if name.endswith((".json", ".avro", ".puffin"))]
