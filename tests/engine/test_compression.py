"""The compression of columns in the files of a table: SET COMPRESSION counts for new files."""

from pathlib import Path

import pyarrow.parquet as pq

import seachange

ROWS = 20_000


def codecs(data: Path) -> dict[str, set[str]]:
    """By file, the compression of the text column, which is the second."""
    found: dict[str, set[str]] = {}
    for path in data.rglob("*.parquet"):
        footer = pq.read_metadata(path)
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        columns = [group.column(n) for group in groups for n in range(group.num_columns)]
        found[path.name] = {column.compression for column in columns if column.path_in_schema == "c2"}
    return {name: found for name, found in found.items() if found}


def test_new_files_are_compressed_as_the_column_says(tmp_path):
    with seachange.connect(tmp_path) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("create table t (id int primary key, a text compression snappy)")
        cursor.execute(f"insert into t select i, 'value ' || i from generate_series(1, {ROWS}) as s (i)")
        written = codecs(tmp_path)
        assert list(written.values()) == [{"SNAPPY"}]
        cursor.execute("alter table t alter column a set compression lz4")
        assert codecs(tmp_path) == written
        for method, codec in (("lz4", "LZ4"), ("none", "UNCOMPRESSED"), ("zstd", "ZSTD")):
            cursor.execute(f"alter table t alter column a set compression {method}")
            before = codecs(tmp_path)
            # Compaction has something to do.
            cursor.execute("update t set a = 'value ' || id where id <= 10")
            cursor.execute("vacuum full t")
            new = {name: found for name, found in codecs(tmp_path).items() if name not in before}
            assert set().union(*new.values()) == {codec}
        cursor.execute(f"select count(*), min(a), max(length(a)) from t where a = 'value ' || id and id <= {ROWS}")
        assert cursor.fetchone() == (ROWS, "value 1", 11)
