"""Which columns are packed, compressed or given a dictionary; and how much of them a node keeps decoded."""

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seachange.model.ids import SegmentId
from seachange.storage.row_groups import Columns, RowGroupCache
from seachange.storage.segment_writer import choose_encodings
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.storage.samples import TYPES, Store, some_values, table_of

RANDOM = random.Random(1)
ROWS = 5_000


@pytest.mark.parametrize(
    ("values", "dictionary", "encoding", "compression"),
    [
        (list(range(ROWS)), False, "DELTA_BINARY_PACKED", None),
        ([RANDOM.getrandbits(62) for _ in range(ROWS)], False, None, "none"),
        ([RANDOM.random() for _ in range(ROWS)], False, None, "none"),
        ([RANDOM.randrange(20) for _ in range(ROWS)], True, None, "none"),
        ([RANDOM.randrange(100_000) // 100 * 100 for _ in range(ROWS)], False, None, "none"),
        ([f"name {i}" for i in range(ROWS)], False, "DELTA_LENGTH_BYTE_ARRAY", "zstd"),
        ([f"name {i % 5}" for i in range(ROWS)], True, None, None),
        ([RANDOM.randbytes(40) for i in range(ROWS)], False, "DELTA_LENGTH_BYTE_ARRAY", "none"),
        ([None] * ROWS, True, None, None),
    ],
    ids=[
        "dense key",
        "random integers",
        "random floats",
        "few numbers",
        "more numbers",
        "text",
        "few texts",
        "noise",
        "nothing",
    ],
)
def test_a_column_is_encoded_after_its_values(values, dictionary, encoding, compression):
    column = pa.array(values, pa.string() if values[0] is None else None)
    chosen = choose_encodings(pa.table({"c1": column}))
    assert (chosen.dictionary == ("c1",)) == dictionary
    assert chosen.encoding.get("c1") == encoding
    # Whether zstd gains anything on the little that packing or a dictionary leaves is left open.
    assert compression is None or chosen.compression["c1"] == compression


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("count", [1, 3, 300])
def test_every_type_has_an_encoding(tmp_path, type_, count):
    shape = Store(tmp_path).shape((type_,), key=(0,))
    chosen = choose_encodings(table_of(shape, [(value,) for value in some_values(type_, count)]))
    assert set(chosen.compression) == {"c1"}


def decoded(bytes_: int) -> Columns:
    return Columns([pa.array(np.zeros(bytes_, np.int8))])


def test_decoded_parts_stay_below_their_bound():
    cache = RowGroupCache(1_000)
    for n in range(20):
        cache.put(SegmentId(n % 4), n, decoded(300))
        assert cache.nbytes <= 1_000
    assert cache.get(SegmentId(3), 19) is not None
    assert cache.get(SegmentId(0), 0) is None
    for n in range(4):
        cache.forget(SegmentId(n))
    assert cache.nbytes == 0


def test_a_part_too_large_for_the_bound_is_held_alone():
    cache = RowGroupCache(1_000)
    cache.put(SegmentId(1), 0, decoded(100))
    cache.put(SegmentId(1), 1, decoded(5_000))
    assert cache.get(SegmentId(1), 0) is None
    assert cache.get(SegmentId(1), 1) is not None


def test_an_offered_part_is_kept_from_the_second_time():
    cache = RowGroupCache(1_000)
    cache.offer(SegmentId(1), 0, decoded(100))
    assert cache.get(SegmentId(1), 0) is None
    cache.offer(SegmentId(1), 0, decoded(100))
    assert cache.get(SegmentId(1), 0) is not None


def test_open_readers_are_bounded(tmp_path):
    store = Store(tmp_path)
    shape = store.shape((BIGINT, TEXT), key=(0,), rows_max=2)
    segments = store.write(shape, [(i, "t") for i in range(20)])
    store.warehouse._readers_max = 3
    readers = [store.reader(shape, segment) for segment in segments]
    assert store.reader(shape, segments[-1]) is readers[-1]
    assert store.reader(shape, segments[0]) is not readers[0]
    assert readers[0].find((1,)) == (1, (1, "t"))


def test_no_row_with_nan_is_skipped(tmp_path):
    """The statistics of a file leave NaN out, which is above every number."""
    store = Store(tmp_path)
    shape = store.shape([BIGINT, SqlType(Kind.DOUBLE), SqlType(Kind.REAL)], [0])
    (segment,) = store.write(shape, [(1, 0.0, 0.0), (2, float("nan"), float("nan")), (3, 1.0, None)])
    path = store.warehouse.path(segment)
    for condition in ("c2 > 5", "c2 = CAST('nan' AS DOUBLE)", "c3 > 5"):
        found = duckdb.execute(f"SELECT c1 FROM read_parquet('{path}') WHERE {condition}").fetchall()
        assert found == [(2,)], condition


@pytest.mark.parametrize(("type_", "value"), [(TEXT, "x"), (SqlType(Kind.BYTEA), b"")])
def test_no_row_is_taken_for_null(tmp_path, type_, value):
    """DuckDB 2.0.0 takes all values of a row group for NULL if they are one text and NULLs, by its statistics."""
    store = Store(tmp_path)
    shape = store.shape([BIGINT, type_], [0], row_group_rows=4)
    (segment,) = store.write(shape, [(i, None if i % 2 else value) for i in range(4)])
    path = store.warehouse.path(segment)
    for condition in ("c2 IS NULL", "c2 IS NULL OR c2 > c2"):
        found = duckdb.execute(f"SELECT c1 FROM read_parquet('{path}') WHERE {condition} ORDER BY 1").fetchall()
        assert found == [(1,), (3,)], condition
