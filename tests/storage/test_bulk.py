"""Rows in any order become sorted segments; duplicates, failing sources and full disks are told apart."""

import fcntl
import math
import os
import random
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.runtime.faults import FAULTS
from seachange.storage.bulk import Distinct, distinct_neighbours, sort_into_segments, sort_query_into_segments
from seachange.storage.spill import SortLimits, sorting_connection
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.storage.samples import TYPES, Store, some_values, sorted_rows, table_of

DOUBLE = SqlType(Kind.DOUBLE)


class Duplicate(Exception):
    pass


@pytest.fixture
def store(tmp_path):
    yield Store(tmp_path / "warehouse")
    FAULTS.disarm()


@pytest.fixture
def connection(tmp_path):
    with sorting_connection(tmp_path / "spill") as connection:
        yield connection


def read_all(store, shape, segments):
    return [store.reader(shape, s).row(position) for s in segments for position in range(s.rows)]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_rows_come_out_sorted(store, connection, type_):
    shape = store.shape((type_, BIGINT, type_), key=(0, 1), row_group_rows=32, rows_max=100)
    values = [None, *some_values(type_, 60)]
    rows = [(value, i, value) for value in values for i in range(4)]
    random.Random(1).shuffle(rows)
    segments = sort_into_segments(connection, table_of(shape, rows), shape, store.files, store.reserve)
    assert read_all(store, shape, segments) == sorted_rows(shape, rows)
    assert all(segment.rows <= 100 for segment in segments)


def test_a_reader_and_a_query_do_as_well_as_a_table(store, connection):
    shape = store.shape((TEXT, BIGINT), key=(1,), row_group_rows=1_000, rows_max=5_000)
    rows = [(f"t{i}", i) for i in range(12_000)]
    random.Random(1).shuffle(rows)
    source = table_of(shape, rows)
    primary = sort_into_segments(connection, source.to_reader(100), shape, store.files, store.reserve)
    assert read_all(store, shape, primary) == sorted_rows(shape, rows)
    secondary = store.shape((TEXT, BIGINT), key=(0, 1), rows_max=7_000)
    found = sort_query_into_segments(
        connection,
        "SELECT c1, c2 FROM read_parquet($files)",
        {"files": store.warehouse.paths(primary)},
        secondary,
        store.files,
        store.reserve,
    )
    assert read_all(store, secondary, found) == sorted_rows(secondary, rows)


def test_types_of_duckdb_become_those_of_segments(store, connection):
    columns = (
        SqlType(Kind.UUID),
        SqlType(Kind.TIMESTAMPTZ),
        SqlType(Kind.VARCHAR, length=3),
        SqlType(Kind.NUMERIC, 9, 2),
    )
    shape = store.shape(columns, key=(0,))
    (segment,) = sort_query_into_segments(
        connection,
        "SELECT '00000000-0000-0000-0000-0000000000ff'::UUID AS c1, to_timestamp($at) AS c2, 'abc' AS c3, "
        "1.5::DECIMAL(9,2) AS c4",
        {"at": 0},
        shape,
        store.files,
        store.reserve,
    )
    found = store.reader(shape, segment).find((UUID(int=255),))
    assert found is not None
    assert found[1][1] == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("batch_rows", [1, 7, 1_000])
def test_the_first_duplicate_is_named(store, connection, batch_rows):
    shape = store.shape((BIGINT, TEXT), key=(0,), rows_max=50)
    rows = [(i, f"t{i}") for i in range(300)] + [(250, "again"), (111, "again")]
    source = table_of(shape, rows).to_reader(batch_rows)
    with pytest.raises(Duplicate) as raised:
        sort_into_segments(connection, source, shape, store.files, store.reserve, Distinct(shape.key, Duplicate))
    assert raised.value.args == ((111,),)
    assert store.files.names() == []


def test_uniqueness_of_a_prefix_ignores_nulls(store, connection):
    shape = store.shape((TEXT, BIGINT), key=(0, 1))
    rows: list[tuple[str | None, int]] = [("a", 1), ("b", 2), (None, 3), (None, 4)]
    unique = Distinct(shape.key[:1], Duplicate)
    sort_into_segments(connection, table_of(shape, rows), shape, store.files, store.reserve, unique)
    rows.append(("b", 5))
    with pytest.raises(Duplicate) as raised:
        sort_into_segments(connection, table_of(shape, rows), shape, store.files, store.reserve, unique)
    assert raised.value.args == (("b",),)


def test_uniqueness_of_a_prefix_counts_nulls_that_are_not_distinct(store, connection):
    shape = store.shape((TEXT, BIGINT, BIGINT), key=(0, 1, 2))
    rows: list[tuple[str | None, int | None, int]] = [("a", None, 1), ("b", None, 2), (None, None, 3), (None, 1, 4)]
    unique = Distinct(shape.key[:2], Duplicate, nulls_distinct=False)
    sort_into_segments(connection, table_of(shape, rows), shape, store.files, store.reserve, unique)
    for again in ("b", None):
        with pytest.raises(Duplicate) as raised:
            sort_into_segments(
                connection, table_of(shape, [*rows, (again, None, 5)]), shape, store.files, store.reserve, unique
            )
        assert raised.value.args == ((again, None),)


@pytest.mark.parametrize("pair", [(0.0, -0.0), (math.nan, -math.nan)])
def test_floats_that_are_one_key_are_duplicates(store, connection, pair):
    shape = store.shape((DOUBLE,), key=(0,))
    with pytest.raises(Duplicate):
        sort_into_segments(
            connection,
            table_of(shape, [(pair[0],), (1.0,), (pair[1],)]),
            shape,
            store.files,
            store.reserve,
            Distinct(shape.key, Duplicate),
        )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.none() | st.integers(0, 5), st.integers(0, 5)), max_size=30), st.integers(1, 7), st.booleans()
)
def test_duplicates_are_found_across_batches(keys, batch_rows, nulls_distinct):
    ordered = sorted(keys, key=lambda key: (key[0] is None, key[0] or 0, key[1]))
    batch = pa.table(
        {"c1": pa.array([k[0] for k in ordered], pa.int64()), "c2": pa.array([k[1] for k in ordered], pa.int64())}
    )
    seen = [a for a, b in pairwise(ordered) if a == b and not (a[0] is None and nulls_distinct)]
    unique = Distinct((ColumnId(1), ColumnId(2)), Duplicate, nulls_distinct)
    stream = distinct_neighbours(iter(batch.to_batches(batch_rows)), unique)
    if not seen:
        assert sum(part.num_rows for part in stream) == len(keys)
        return
    with pytest.raises(Duplicate) as raised:
        list(stream)
    assert raised.value.args == (seen[0],)


def test_the_source_s_own_error_comes_out_unchanged(store, connection):
    shape = store.shape((BIGINT,), key=(0,))
    problem = errors.NotNullViolation(column="a", relation="t")

    def batches():
        yield from table_of(shape, [(1,)]).to_batches()
        raise problem

    source = pa.RecordBatchReader.from_batches(table_of(shape, []).schema, batches())
    with pytest.raises(errors.NotNullViolation) as raised:
        sort_into_segments(connection, source, shape, store.files, store.reserve)
    assert raised.value is problem


def test_the_sorted_point_lies_before_the_first_segment(store, connection):
    shape = store.shape((BIGINT,), key=(0,))
    seen: list[list[str]] = []
    FAULTS.arm("bulk.sorted", lambda: seen.append(store.files.names()))
    sort_into_segments(connection, table_of(shape, [(2,), (1,)]), shape, store.files, store.reserve)
    assert seen == [[]]
    assert len(store.files.names()) == 1


@pytest.mark.parametrize("point", ["bulk.sorted", "segment.written"])
def test_an_interrupt_while_segments_are_written_is_no_error_of_the_disk(store, connection, point):
    """At that point Arrow keeps only the text of DuckDB's exceptions."""
    shape = store.shape((BIGINT,), key=(0,), row_group_rows=10_240, rows_max=10_240)
    FAULTS.arm(point, connection.interrupt)
    with pytest.raises(errors.QueryCanceled):
        sort_query_into_segments(
            connection,
            "SELECT (i * 7919) % 600000 AS c1 FROM range(600000) r(i)",
            None,
            shape,
            store.files,
            store.reserve,
        )


def test_a_sort_larger_than_its_memory_spills_and_tidies_up(store, tmp_path):
    shape = store.shape((BIGINT, TEXT), key=(0,), row_group_rows=40_960)
    spill = tmp_path / "spill"
    with sorting_connection(spill, SortLimits(48 << 20)) as connection:
        segments = sort_query_into_segments(
            connection,
            "SELECT (i * 7919) % 1500000 AS c1, md5(i::VARCHAR) AS c2 FROM range($count) r(i)",
            {"count": 1_500_000},
            shape,
            store.files,
            store.reserve,
            Distinct(shape.key, Duplicate),
        )
        assert any(spill.glob("sort-*"))
    assert not any(spill.glob("sort-*"))
    assert sum(segment.rows for segment in segments) == 1_500_000
    with duckdb.connect() as connection:
        paths = store.warehouse.paths(segments)
        (found,) = connection.read_parquet(paths).aggregate("min(c1), max(c1), count(DISTINCT c1)").fetchall()
    assert found == (0, 1_499_999, 1_500_000)


def test_no_room_to_spill_is_a_full_disk(store, tmp_path):
    shape = store.shape((BIGINT, TEXT), key=(0,))
    with sorting_connection(tmp_path / "spill", SortLimits(48 << 20)) as connection:
        connection.execute("SET max_temp_directory_size = '1MB'")
        with pytest.raises(errors.DiskFull):
            sort_query_into_segments(
                connection,
                "SELECT (i * 7919) % 1500000 AS c1, md5(i::VARCHAR) AS c2 FROM range(1500000) r(i)",
                None,
                shape,
                store.files,
                store.reserve,
            )
    assert store.files.names() == []


def test_only_folders_of_the_dead_are_removed(tmp_path):
    left, alive = tmp_path / "sort-dead", tmp_path / "sort-alive"
    for folder in (left, alive):
        folder.mkdir()
        (folder / "lock").touch()
    lock = os.open(alive / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with sorting_connection(tmp_path):
        assert not left.exists()
        assert alive.exists()
    os.close(lock)
