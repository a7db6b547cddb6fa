"""Imports on Spark load the rows that imports in this process load."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seachange import errors
from tests.iceberg.reading import open_lake


def test_an_import_on_spark(tmp_path: Path):
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for number in range(3):
        ids = range(number * 1_000, number * 1_000 + 1_000)
        rows = {"id": pa.array(ids), "s": pa.array([f"s{i}" for i in ids]), "n": pa.array([str(i) for i in ids])}
        pq.write_table(pa.table(rows), incoming / f"{number}.parquet")
    data = tmp_path / "data"
    data.mkdir()
    (data / "seachange.toml").write_text(f'"seachange.import_folders" = "{incoming}"\n')
    with open_lake(data) as lake:
        lake.run("set seachange.local_rows = 0")
        lake.run(f"call seachange.import_table('t', 'parquet', '{incoming}/*.parquet', 'id')")
        result = lake.session.execute("select count(*), sum(id), min(s), max(n) from t")
        assert [*result.rows] == [(3_000, 4_498_500, "s0", "999")]
        assert any("Spark" in str(event) for event in lake.session.execute("select event from seachange.events").rows)
        lake.run("create table narrow (id smallint primary key, s varchar(4), n text)")
        with pytest.raises(errors.DataError) as caught:
            lake.run(f"call seachange.import_table('narrow', 'parquet', '{incoming}/*.parquet')")
        assert "/1.parquet" in str(caught.value)
