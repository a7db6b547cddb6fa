"""The writers of the data source as Spark uses them, without an application: planned, sent, repeated, refused."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

import seachange
from pyspark_seachange.batch_write import TableWriter
from pyspark_seachange.options import SeachangeError
from pyspark_seachange.spool import WrittenFiles
from pyspark_seachange.stream_write import StreamWriter
from seachange.engine.api import Connection
from seachange.engine.dataframes.file_insert import RowFile
from seachange.engine.datasource.write_shape import WriteShape


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    with seachange.connect(data=tmp_path / "data", autocommit=True) as opened:
        yield opened


def schema(*names: str) -> StructType:
    return StructType([StructField(name, LongType()) for name in names])


def task(shape: WriteShape, folder: Path, rows: pa.Table) -> WrittenFiles:
    """What a task reports."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, path)
    return WrittenFiles((RowFile(str(path), rows.num_rows, path.stat().st_size),), shape)


def rows_of(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


class Stream:
    """Micro-batches of a query."""

    def __init__(self, data: Path, names: Sequence[str], options: Mapping[str, str], overwrite: bool = False) -> None:
        self._given = {"data": str(data), "path": "copy", "queryName": "q", **options}
        self._names, self._overwrite = names, overwrite

    def write(self, batch: int, *rows: tuple[int, ...]) -> None:
        """Planned in one process and committed in another, of which only options and messages are the same."""
        planned = StreamWriter(self._given, schema(*self._names), self._overwrite)
        sent = pickle.loads(cloudpickle.dumps(planned))
        shape, folder = sent._planned
        message = task(shape, folder, rows_of(self._names, rows))
        committing = StreamWriter(self._given, schema(*self._names), self._overwrite)
        try:
            committing.commit([message, None], batch)
        except SeachangeError:
            committing.abort([message, None], batch)
            raise


def found(db: Connection) -> list[tuple[int, ...]]:
    return db.execute("select * from copy order by 1").fetchall()


def test_a_batch_that_is_repeated_is_written_once_over_ddl(db: Connection, tmp_path: Path) -> None:
    db.execute("create table copy (id int primary key, amount int, seq bigint)")
    checkpoint = tmp_path / "checkpoint"
    options = {"merge_keys": "id", "checkpointLocation": f"file://{checkpoint}"}
    stream = Stream(tmp_path / "data", ("id", "amount", "seq"), options)
    stream.write(0, (1, 10, 1), (2, 20, 1))
    stream.write(0, (1, 99, 1), (3, 99, 1))
    assert found(db) == [(1, 10, 1), (2, 20, 1)]
    db.execute("alter table copy rename column amount to much")
    db.execute("alter table copy alter column id type bigint")
    db.execute("alter table copy drop column seq")
    stream.write(1, (2, 21, 1), (3, 30, 1))
    db.execute("alter table copy add constraint small check (much < 100)")
    with pytest.raises(SeachangeError, match="23514"):
        stream.write(2, (8, 100, 1))
    db.execute("alter table copy drop constraint small")
    stream.write(2, (8, 100, 1))
    assert found(db) == [(1, 10), (2, 21), (3, 30), (8, 100)]
    # Another checkpoint is another writer; the complete mode replaces all rows.
    whole = Stream(tmp_path / "data", ("id", "much"), {"checkpointLocation": str(tmp_path / "other")}, overwrite=True)
    whole.write(0, (5, 5))
    assert found(db) == [(5, 5)]
    assert list((tmp_path / "data" / "spool").iterdir()) == []


def test_a_writer_needs_a_name_that_outlives_it(db: Connection, tmp_path: Path) -> None:
    db.execute("create table copy (id int primary key)")
    unnamed: tuple[dict[str, str], ...] = ({}, {"checkpointLocation": "hdfs://host/place"})
    for options in unnamed:
        with pytest.raises(SeachangeError, match=r"writer_id.*22023"):
            Stream(tmp_path / "data", ("id",), options).write(0, (1,))
    Stream(tmp_path / "data", ("id",), {"writer_id": "w"}).write(0, (1,))
    assert found(db) == [(1,)]


def test_a_program_names_the_batches_that_it_writes_itself(db: Connection, tmp_path: Path) -> None:
    db.execute("create table copy (id int primary key, n int)")

    def write(rows: Sequence[tuple[int, int]], options: Mapping[str, str], overwrite: bool = False) -> None:
        given = {"data": str(tmp_path / "data"), "path": "copy", **options}
        sent = pickle.loads(cloudpickle.dumps(TableWriter(given, schema("id", "n"), overwrite)))
        sent.commit([task(sent._shape, sent._folder, rows_of(("id", "n"), rows))])

    once = {"writer_id": "w", "merge_keys": "id"}
    write([(5, 6), (6, 6)], {**once, "batch_id": "0"})
    write([(5, 7)], {**once, "batch_id": "0"})
    write([(6, 7)], {**once, "batch_id": "1"})
    assert found(db) == [(5, 6), (6, 7)]
    write([(1, 1)], {}, overwrite=True)
    assert found(db) == [(1, 1)]
    for options, shown in (
        ({"batch_id": "1"}, "writer_id and batch_id"),
        ({"writer_id": "w"}, "writer_id and batch_id"),
        ({"writerid": "w"}, "no option writerid"),
    ):
        with pytest.raises(SeachangeError, match=shown):
            write([(1, 1)], options)
    with pytest.raises(SeachangeError, match="merge_keys"):
        write([(1, 1)], {"merge_keys": "id"}, overwrite=True)
    assert list((tmp_path / "data" / "spool").iterdir()) == []
