"""Folders and files whose names have the wild cards of DuckDB: nothing else that they would match is read."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seachange

ROWS = 7_000
INDEXED = "create table t (id int primary key, n int, s text unique)"
LOAD = "insert into t select i, i, 's' || i from generate_series({0}, {0} + 6999) i"
SUMS = "select count(*), sum(id), sum(n) from t"


@pytest.mark.parametrize(("plain", "wild"), [("db1", "db[1]"), ("db-x", "db-?"), ("shop", "s*p")])
def test_a_database_does_not_read_the_files_of_another(tmp_path: Path, plain: str, wild: str):
    """Both have files of the same names."""
    with closing(seachange.connect(tmp_path / plain, autocommit=True)) as other:
        other.execute(INDEXED)
        other.execute(LOAD.format(1))
    with closing(seachange.connect(tmp_path / wild, autocommit=True)) as mine:
        mine.execute(INDEXED)
        mine.execute(LOAD.format(50_001))
        expected = (ROWS, sum(range(50_001, 50_001 + ROWS)), sum(range(50_001, 50_001 + ROWS)))
        assert mine.execute(SUMS).fetchall() == [expected]
        mine.execute("update t set s = 'u' || id where id % 2 = 0")
        mine.execute("alter table t alter column n type text using 'n' || n")
        mine.execute("create index on t (n)")
        mine.execute("vacuum full t")
        assert mine.execute("select count(*), sum(id), min(n), max(n) from t").fetchall() == [
            (ROWS, expected[1], "n50001", "n57000")
        ]
        with pytest.raises(seachange.IntegrityError):
            mine.execute("insert into t select i, 'x', 's50001' from generate_series(1, 6000) i")


def test_an_import_reads_the_file_that_is_named(tmp_path: Path):
    data, incoming = tmp_path / "data", tmp_path / "incoming"
    data.mkdir(mode=0o700)
    incoming.mkdir()
    (data / "seachange.toml").write_text(f'"seachange.import_folders" = "{incoming}"\n')
    for number, name in enumerate(("a1.parquet", "a[1].parquet", "l1.parquet", "l*.parquet")):
        pq.write_table(pa.table({"id": [number]}), incoming / name)
    with closing(seachange.connect(data, autocommit=True)) as connection:
        for table, pattern in (("t", "a[[]1].parquet"), ("u", "l[*].parquet")):
            connection.execute(f"call seachange.import_table('{table}', 'parquet', '{incoming}/{pattern}')")
        assert connection.execute("select id from t").fetchall() == [(1,)]
        assert connection.execute("select id from u").fetchall() == [(3,)]
