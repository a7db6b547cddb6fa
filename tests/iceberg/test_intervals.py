"""Exports at intervals, the view of exported tables, and the older version of the format."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seachange import errors
from seachange.iceberg.obstacles import check_elements
from seachange.iceberg.table_schema import Unmapped, map_columns
from tests.iceberg.reading import Lake, open_lake, read
from tests.iceberg.test_exports import DAY_US, ShiftedClock
from tests.support.workers import wait_until

TABLE = "create table t (id int primary key, s text)"
MANY = "insert into t select i, 'x' || i from generate_series(1, 6000) i"
HOUR_US = DAY_US // 24


def shown(lake: Lake) -> dict[str, Any]:
    result = lake.session.execute("select * from seachange.iceberg_tables where table_name = 't'")
    (row,) = result.rows
    return dict(zip([column.name for column in result.columns or ()], row, strict=True))


def due(lake: Lake) -> None:
    lake.node.exports.export_due(lake.node.epoch)


def test_a_table_with_the_parameter_is_exported_at_intervals(lake: Lake):
    clock = ShiftedClock(lake)
    lake.run(TABLE, MANY)
    due(lake)
    assert shown(lake)["snapshot"] is None
    lake.run("alter table t set (seachange.iceberg = on)")
    due(lake)
    first = shown(lake)
    assert read(first["metadata_location"]) == lake.sql()
    lake.run("delete from t where id < 100")
    due(lake)
    assert shown(lake)["snapshot"] == first["snapshot"]
    clock.ahead_us += HOUR_US
    due(lake)
    second = shown(lake)
    assert (second["snapshots"], second["enabled"], second["reason"]) == (2, True, None)
    assert read(second["metadata_location"]) == lake.sql()


def test_maintenance_exports_by_itself(tmp_path: Path):
    with open_lake(tmp_path / "data", maintained=True) as lake:
        lake.run(TABLE, "alter table t set (seachange.iceberg = on)")
        wait_until(lambda: shown(lake)["snapshot"] is not None, "an export")


def test_the_reason_is_listed(lake: Lake):
    lake.run(TABLE, MANY)
    assert shown(lake)["reason"] is None
    lake.run("alter table t add column tags text[] default array['a']", "alter table t set (seachange.iceberg = on)")
    due(lake)
    assert "default that older files lack" in shown(lake)["reason"]
    assert shown(lake)["snapshot"] is None


def test_format_2_has_position_deletes_and_refuses_defaults_that_would_be_lost(lake: Lake):
    lake.run(TABLE, MANY, "alter table t set (seachange.iceberg_format = 2)")
    lake.run("delete from t where id < 50", "insert into t values (9000, 'inline')")
    exported = lake.check()
    assert exported.metadata["format-version"] == 2
    assert "next-row-id" not in exported.metadata
    formats = {file.format for m in exported.manifests for file in m.files if file.referenced}
    assert formats == {"PARQUET"}
    lake.run("alter table t add column n int default 5")
    with pytest.raises(errors.NotMappable, match="needs format version 3"):
        lake.export()
    assert "needs format version 3" in shown(lake)["reason"]
    lake.run("vacuum full t")
    lake.check()
    lake.run("alter table t reset (seachange.iceberg_format)")
    assert lake.check().metadata["format-version"] == 3


def test_files_of_older_releases_without_element_ids_are_refused(lake: Lake):
    """Such a file has the ids of columns only."""
    lake.run("create table t (id int primary key, tags text[])")
    lake.run("insert into t select i, array['a'] from generate_series(1, 6000) i")
    (path,) = (file.path for m in lake.check().manifests for file in m.files)
    schema = pq.read_schema(path)
    check_elements(lake.table(), schema)
    older = pa.schema([pa.field(f.name, pa.list_(pa.string()) if f.name == "c2" else f.type) for f in schema])
    with pytest.raises(Unmapped, match="no ids for the elements"):
        check_elements(lake.table(), older)


def test_addresses_are_not_shown_as_bytes(lake: Lake):
    lake.run("create table t (id int primary key, ips inet[])")
    with pytest.raises(Unmapped, match=r"type inet\[\]"):
        map_columns(lake.table(), {}, (), 3)
