"""What was written to a segment is read back: by lookups and by DuckDB."""

from itertools import pairwise
from uuid import UUID

import duckdb
import pyarrow.parquet as pq
import pytest

from seachange.model.ids import ColumnId
from seachange.storage.arrow import element_id
from seachange.storage.segment_footer import decode_footer
from seachange.values.types import BIGINT, TEXT, Kind, SqlType, array_of
from tests.storage.samples import TYPES, Store, key_of, same, some_values

INTEGER = SqlType(Kind.INTEGER)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "warehouse")


def check_every_row(store, shape, rows):
    """Every row is found by its key at its position, and DuckDB reads the same rows in the same order."""
    (segment,) = store.write(shape, rows)
    reader = store.reader(shape, segment)
    assert segment.rows == len(rows)
    for position, row in enumerate(rows):
        at, found = reader.find(key_of(shape, row))
        assert at == position
        assert all(same(x, y) for x, y in zip(row, found, strict=True))
        assert reader.row(position) == found or any(value != value for value in found)
    with duckdb.connect() as connection:
        source = connection.read_parquet(store.warehouse.path(segment))
        assert [str(type_) for type_ in source.types] == [type_.duckdb for _, type_ in shape.columns]
        read = zip(*[column.to_pylist() for column in source.to_arrow_table().columns], strict=True)
    for row, found in zip(rows, read, strict=True):
        # DuckDB hands a UUID to Arrow as text.
        assert all(same(x, UUID(y) if isinstance(x, UUID) else y) for x, y in zip(row, found, strict=True))
    return reader


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_as_a_key(store, type_):
    shape = store.shape((type_, BIGINT), key=(0,), row_group_rows=16)
    rows = [(value, i if i % 3 else None) for i, value in enumerate(some_values(type_, 50))]
    reader = check_every_row(store, shape, rows)
    assert reader.find((None,)) is None


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_as_a_value_with_nulls(store, type_):
    shape = store.shape((BIGINT, type_, type_), key=(0,), row_group_rows=16)
    values = some_values(type_, 40)
    check_every_row(store, shape, [(i, v if i % 2 else None, None) for i, v in enumerate(values)])


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_leading_a_nullable_composite_key(store, type_):
    shape = store.shape((type_, BIGINT), key=(0, 1), row_group_rows=16)
    values = some_values(type_, 20)
    rows = [(value, i) for value in values for i in range(3)] + [(None, i) for i in range(20)]
    reader = check_every_row(store, shape, rows)
    assert [row for _, row in reader.find_prefix((values[1],))] == [(values[1], i) for i in range(3)]
    assert [position for position, _ in reader.find_prefix((None,))] == list(range(len(rows) - 20, len(rows)))


def test_key_columns_need_not_come_first(store):
    shape = store.shape((INTEGER, TEXT, BIGINT), key=(2, 1), row_group_rows=8)
    check_every_row(store, shape, [(i * 2, f"t{i % 5}", i // 5) for i in range(100)])


def test_a_segment_of_keys_alone(store):
    shape = store.shape((TEXT, BIGINT), key=(0, 1), row_group_rows=8)
    check_every_row(store, shape, [(f"t{i // 5:03d}", i % 5) for i in range(40)])


def test_long_text_and_nul_in_keys(store):
    shape = store.shape((TEXT, BIGINT), key=(0,), row_group_rows=4)
    texts = ["", "\x00", "\x00\x00", "\x00a", "a", "a\x00", "a" * 10_000, "a" * 10_000 + "b", "é", "\U0001f600"]
    check_every_row(store, shape, [(text, i) for i, text in enumerate(texts)])


def test_a_key_asked_for_in_a_wider_type(store):
    shape = store.shape((SqlType(Kind.SMALLINT), TEXT), key=(0,), row_group_rows=8)
    (segment,) = store.write(shape, [(i, f"t{i}") for i in range(-20, 20)])
    reader = store.warehouse.reader(segment, ((shape.key[0], BIGINT),))
    assert reader.find((-20,)) == (0, (-20, "t-20"))
    assert reader.find((2**40,)) is None
    assert reader.positions([(3,), (2**40,), (None,)]).tolist() == [23, -1, -1]


def test_writes_are_cut_at_the_row_limit(store):
    shape = store.shape((BIGINT,), key=(0,), row_group_rows=16, rows_max=48)
    segments = store.write(shape, [(i,) for i in range(100)])
    assert [segment.rows for segment in segments] == [48, 48, 4]
    assert [store.reader(shape, s).find((i,)) for s, i in zip(segments, (0, 95, 96), strict=True)] == [
        (0, (0,)),
        (47, (95,)),
        (0, (96,)),
    ]
    assert all(before.key_max < after.key_min for before, after in pairwise(segments))


def test_nothing_to_write_writes_nothing(store):
    assert store.write(store.shape((BIGINT,), key=(0,)), []) == []
    assert store.files.names() == []


def test_segment_footer_identifies_the_file(store):
    shape = store.shape((BIGINT, TEXT, SqlType(Kind.BOOLEAN)), key=(0,), row_group_rows=16)
    (segment,) = store.write(shape, [(i, "same", True) for i in range(40)])
    metadata = pq.read_metadata(store.warehouse.path(segment))
    footer = decode_footer(metadata.metadata)
    assert footer is not None
    assert (footer.segment_id, footer.index_id, footer.layout_id) == (segment.id, 7, 3)
    assert metadata.num_row_groups == len(footer.firsts) == 3
    fields = pq.read_schema(store.warehouse.path(segment))
    assert [field.metadata[b"PARQUET:field_id"] for field in fields] == [b"1", b"2", b"3"]
    assert metadata.row_group(0).sorting_columns[0].column_index == 0
    assert metadata.row_group(0).column(0).statistics.min == 0
    assert metadata.row_group(1).column(0).statistics.max == 31


def test_array_elements_have_field_ids(store):
    shape = store.shape((BIGINT, array_of(TEXT), array_of(SqlType(Kind.UUID))), key=(0,))
    (segment,) = store.write(shape, [(1, ["a"], None)])
    elements = [field.type.value_field for field in list(pq.read_schema(store.warehouse.path(segment)))[1:]]
    ids = [int(element.metadata[b"PARQUET:field_id"]) for element in elements]
    assert ids == [element_id(ColumnId(2)), element_id(ColumnId(3))]
    assert [element.name for element in elements] == ["element", "element"]


def test_duckdb_skips_by_the_bloom_filter_of_a_key_column(store):
    shape = store.shape((TEXT, BIGINT), key=(0, 1), row_group_rows=1_000)
    (segment,) = store.write(shape, [(f"t{i % 7}", i * 2) for i in range(7_000)])
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT bloom_filter_excludes FROM parquet_bloom_probe($1, 'c2', 7)", [store.warehouse.path(segment)]
        ).fetchall()
    assert sum(excluded for (excluded,) in rows) >= 5
