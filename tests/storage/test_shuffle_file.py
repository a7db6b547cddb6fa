"""Rows that are partitioned into ranges come back by range, all of them, and unfinished files are removed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from seachange import errors
from seachange.model.ids import SegmentId
from seachange.storage.shuffle_file import ShuffleFile, ShuffleWriter, read_range, shuffle_name
from tests.storage.samples import Store

SCHEMA = pa.schema([("c1", pa.int64()), ("c2", pa.string())])
RANGES = 3


def chunk(first: int, count: int) -> pa.RecordBatch:
    numbers = list(range(first, first + count))
    return pa.record_batch([pa.array(numbers), pa.array([f"t{n}" for n in numbers])], schema=SCHEMA)


def places(rows: pa.RecordBatch) -> NDArray[np.uint16]:
    """Every fourth row is in no range."""
    return np.array([number % (RANGES + 1) for number in rows.column(0).to_pylist()], np.uint16)


def write(store: Store) -> ShuffleFile:
    with ShuffleWriter(store.files, SegmentId(7), SCHEMA, RANGES) as writer:
        for rows in (chunk(0, 10), chunk(10, 1), chunk(11, 30)):
            writer.write(rows, places(rows))
        return writer.finish()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_each_range_has_its_rows(store: Store):
    file = write(store)
    assert file.counts == (11, 10, 10)
    for number in range(RANGES):
        rows = [row for batch in read_range(store.files, file, number) for row in batch.to_pylist()]
        expected = [n for n in range(41) if n % (RANGES + 1) == number]
        assert rows == [{"c1": n, "c2": f"t{n}"} for n in expected]


def test_a_file_that_is_not_whole_is_noticed(store: Store):
    file = write(store)
    path = Path(store.files.path(shuffle_name(file.id)))
    store.warehouse.check_shuffle_files([file])
    store.warehouse.forget(file.id)
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(errors.SegmentDamaged, match=r"\.arrow.*checksum"):
        store.warehouse.check_shuffle_files([file])
    path.write_bytes(b"")
    with pytest.raises(errors.SegmentDamaged, match="truncated"):
        store.warehouse.check_shuffle_files([file])
    with pytest.raises(errors.SegmentDamaged):
        list(read_range(store.files, file, 0))


def test_unfinished_file_is_removed(store: Store):
    def begin() -> None:
        with ShuffleWriter(store.files, SegmentId(7), SCHEMA, RANGES) as writer:
            writer.write(chunk(0, 10), places(chunk(0, 10)))
            raise errors.QueryCanceled(reason="user request")

    with pytest.raises(errors.QueryCanceled):
        begin()
    assert store.files.names() == []


def test_it_is_deleted_by_its_id(store: Store):
    file = write(store)
    assert store.files.names() == [shuffle_name(file.id)]
    store.warehouse.delete([file.id])
    assert store.files.names() == []
