"""Rows read by single pages are the rows that were written, whatever their types and encodings."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seachange import errors
from seachange.storage.pages import PageReader
from seachange.storage.segment_footer import PAGE_ROWS, segment_name
from seachange.storage.segment_reader import SegmentReader
from seachange.storage.thrift import BINARY, BYTE, I16, I32, I64, LIST, STRUCT, ListOf, ThriftReader, encode_struct
from seachange.values.types import BIGINT, TEXT
from tests.storage.samples import TYPES, Store, same, some_values

ROWS = 2 * PAGE_ROWS + 100
# Around the borders of pages.
ASKED = [0, 1, PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS - 1, 2 * PAGE_ROWS, ROWS - 1]


def rows_of(make):
    return [(n, make(n)) for n in range(ROWS)]


def paged(store, type_, rows):
    shape = store.shape((BIGINT, type_), key=(0,), row_group_rows=ROWS)
    (segment,) = store.write(shape, rows)
    return store.reader(shape, segment), segment


def spread(type_):
    values = some_values(type_, ROWS)
    return lambda n: values[n * 7 % len(values)]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("nulls", [0, 3, 1], ids=["no NULLs", "some", "only"])
def test_rows_of_any_type(tmp_path, type_, nulls):
    make = spread(type_)
    rows = rows_of(lambda n: None if nulls and n % nulls == 0 else make(n))
    reader, _ = paged(Store(tmp_path), type_, rows)
    assert all(same(x, y) for at in ASKED for x, y in zip(reader.row(at), rows[at], strict=True))


MADE = {
    "a dictionary": lambda n: f"word {n % 5}",
    "a dictionary that is given up": lambda n: f"{n % 2000:0900d}",
    "wide text": lambda n: f"{n:0500d}",
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_rows_of_any_encoding(tmp_path, make):
    rows = rows_of(make)
    reader, _ = paged(Store(tmp_path), TEXT, rows)
    assert [reader.row(at) for at in ASKED] == [rows[at] for at in ASKED]


def test_a_page_is_all_that_is_decoded(tmp_path):
    store = Store(tmp_path)
    _, segment = paged(store, TEXT, rows_of(lambda n: f"text {n}"))
    reader = PageReader(store.files.open_input(segment_name(segment.id)))
    group = reader.group(0)
    assert group is not None
    assert group.starts == (0, PAGE_ROWS, 2 * PAGE_ROWS)
    assert reader.read(group, 1, ["c2"]).num_rows == PAGE_ROWS


def test_a_group_whose_pages_are_not_aligned_is_read_as_a_whole(tmp_path):
    table = pa.table({"c1": list(range(ROWS)), "c2": [f"{n:0200d}" for n in range(ROWS)]})
    pq.write_table(table, tmp_path / "x.parquet", data_page_size=100_000, max_rows_per_page=PAGE_ROWS)
    with pa.OSFile(str(tmp_path / "x.parquet")) as source:
        assert PageReader(source).group(0) is None


def test_bytes_that_are_no_pages_are_damage(tmp_path):
    store = Store(tmp_path)
    shape = store.shape((BIGINT, TEXT), key=(0,), row_group_rows=ROWS)
    (segment,) = store.write(shape, rows_of(lambda n: f"text {n}"))
    path = tmp_path / segment_name(segment.id)
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(1)
    start = column.data_page_offset
    # After the file was verified: a disk that fails later.
    reader = store.reader(shape, segment)
    assert isinstance(reader, SegmentReader)
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(errors.SegmentDamaged):
        reader.row(PAGE_ROWS)


FIELDS: st.SearchStrategy[Any] = st.deferred(
    lambda: st.one_of(
        st.tuples(st.sampled_from([I16, I32, I64]), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just(BINARY), st.binary(max_size=200)),
        st.tuples(st.just(BYTE), st.integers(0, 255)),
        st.tuples(st.just(STRUCT), STRUCTS),
        st.tuples(st.just(LIST), st.lists(STRUCTS, max_size=20).map(lambda items: ListOf(STRUCT, items))),
        st.sampled_from([(1, True), (2, False)]),
    )
)
STRUCTS: st.SearchStrategy[Any] = st.deferred(lambda: st.dictionaries(st.integers(1, 100), FIELDS, max_size=5))


@given(STRUCTS)
def test_thrift_comes_back(fields):
    assert ThriftReader(encode_struct(fields)).struct() == fields


def test_thrift_reads_and_writes_a_footer_as_it_is(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": list(range(100)), "b": ["x"] * 100}), path, row_group_size=7)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    assert encode_struct(ThriftReader(footer).struct()) == footer
