"""The order of encoded keys is Python's order, and DuckDB's."""

import math
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId, IndexId
from seachange.storage.arrow import schema_of
from seachange.storage.keys import KeyCodec, entry_hash, unique_hash
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.storage.samples import NUMERIC, TYPES, VALUES

COMPOSITES = ((TEXT, BIGINT), (SqlType(Kind.DOUBLE), TEXT), (SqlType(Kind.BYTEA), SqlType(Kind.BYTEA)))


def compare(left: Any, right: Any) -> int:
    """PostgreSQL's order: NULL last, NaN above every number and equal to itself."""
    if left is None or right is None:
        return (left is None) - (right is None)
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    return int(left > right) - int(left < right)


def compare_keys(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    return next((c for c in map(compare, left, right) if c), 0)


def keys_of(types: tuple[SqlType, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*[st.none() | VALUES[type_] for type_ in types])


CASES = st.sampled_from([*((type_,) for type_ in TYPES), *COMPOSITES])


@settings(deadline=None)
@given(CASES.flatmap(lambda types: st.tuples(st.just(types), keys_of(types), keys_of(types))))
def test_bytes_compare_as_keys_do(case):
    types, left, right = case
    codec = KeyCodec(types)
    a, b = codec.encode(left), codec.encode(right)
    assert (a > b) - (a < b) == compare_keys(left, right)


@settings(deadline=None)
@given(CASES.flatmap(lambda types: st.tuples(st.just(types), st.lists(keys_of(types), min_size=1, max_size=20))))
def test_duckdb_sorts_as_bytes_do(case):
    types, keys = case
    columns = [(ColumnId(i), type_) for i, type_ in enumerate(types)]
    arrays = [pa.array([key[i] for key in keys], field.type) for i, field in enumerate(schema_of(columns))]
    source = pa.table([*arrays, pa.array(range(len(keys)))], names=[*schema_of(columns).names, "n"])
    with duckdb.connect() as connection:
        order = ", ".join(f"c{i} ASC NULLS LAST" for i in range(len(types)))
        found = [keys[n] for (n,) in connection.from_arrow(source).order(order + ", n").project("n").fetchall()]
    codec = KeyCodec(types)
    assert [codec.encode(key) for key in found] == sorted(codec.encode(key) for key in keys)
    assert found == sorted(keys, key=cmp_to_key(compare_keys)) or any(
        isinstance(value, float) for key in keys for value in key
    )


@settings(deadline=None)
@given(st.tuples(VALUES[TEXT], VALUES[BIGINT]))
def test_a_prefix_is_a_prefix_of_the_bytes(key):
    codec = KeyCodec((TEXT, BIGINT))
    assert codec.encode(key).startswith(codec.encode_prefix(key[:1]))


@settings(deadline=None)
@given(VALUES[TEXT], VALUES[TEXT], VALUES[BIGINT])
def test_the_bytes_of_one_value_are_no_prefix_of_anothers(left, right, number):
    codec = KeyCodec((TEXT, BIGINT))
    if left != right:
        assert not codec.encode((right, number)).startswith(codec.encode_prefix((left,)))


def test_digits_beyond_the_default_precision_count():
    codec = KeyCodec((NUMERIC,))
    low = Decimal("1234567890123456789012345678.0000000001")
    high = Decimal("1234567890123456789012345678.0000000002")
    assert codec.encode((low,)) < codec.encode((high,))


def test_zeros_are_one_key_and_so_are_nans():
    codec = KeyCodec((SqlType(Kind.DOUBLE),))
    assert codec.encode((0.0,)) == codec.encode((-0.0,))
    assert codec.encode((math.nan,)) == codec.encode((-math.nan,))


@pytest.mark.parametrize("types", [(BIGINT,), (TEXT, BIGINT)])
def test_hashes_keep_indexes_and_purposes_apart(types):
    encoded = KeyCodec(types).encode_prefix((None,))
    hashes = {make(IndexId(i), encoded) for make in (entry_hash, unique_hash) for i in (1, 2)}
    assert len(hashes) == 4
    assert all(-(2**63) <= value < 2**63 for value in hashes)
