"""Lookups in a segment against a dict."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.storage.arrow import arrow_type
from seachange.storage.keys import KeyCodec
from seachange.storage.row_groups import match_rows
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.storage.samples import TYPES, VALUES, Store, codec_of, key_of, same, sorted_rows

SHAPES = st.sampled_from([*((t,) for t in TYPES), (TEXT, BIGINT), (SqlType(Kind.DOUBLE), TEXT, BIGINT)])


def small(type_):
    """Values close together, so that some keys that are asked for are there and some are not."""
    if type_.kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return st.integers(-40, 40)
    if type_.kind in (Kind.TEXT, Kind.VARCHAR):
        return st.text("ab\x00é", max_size=3)
    return VALUES[type_]


@st.composite
def cases(draw):
    types = draw(SHAPES)
    # The only column of a key is never NULL; one of several may be.
    key = st.tuples(*[small(t) if len(types) == 1 else st.none() | small(t) for t in types])
    stored, asked = draw(st.lists(key, min_size=1, max_size=120)), draw(st.lists(key, max_size=120))
    return types, stored, asked, draw(st.integers(1, 50))


@settings(deadline=None)
@given(cases())
def test_positions_and_rows_are_those_of_a_dict(case):
    types, stored, asked, group_rows = case
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        shape = store.shape((*types, BIGINT), key=range(len(types)), row_group_rows=group_rows)
        encode = codec_of(shape).encode
        distinct = {encode(key): (*key, n) for n, key in enumerate(stored)}
        rows = sorted_rows(shape, list(distinct.values()))
        (segment,) = store.write(shape, rows)
        reader = store.reader(shape, segment)
        expected = {encode(key_of(shape, row)): position for position, row in enumerate(rows)}
        wanted = [*asked, *stored]
        positions = reader.positions(wanted)
        assert positions.tolist() == [expected.get(encode(key), -1) for key in wanted]
        assert reader.positions(wanted, [encode(key) for key in wanted]).tolist() == positions.tolist()
        assert list(map(encode, reader.keys())) == sorted(expected)
        for key in wanted:
            found = reader.find(key)
            assert (found is None) == (encode(key) not in expected)
            if found is not None:
                assert found[0] == expected[encode(key)]
                assert all(same(x, y) or x == y for x, y in zip(found[1], rows[found[0]], strict=True))
        for key in wanted[:10]:
            low = codec_of(shape).encode_prefix(key[:1])
            starting = [at for code, at in expected.items() if code.startswith(low)]
            assert [position for position, _ in reader.find_prefix(key[:1])] == sorted(starting)


@settings(deadline=None)
@given(st.data())
def test_rows_match_whatever_the_number_of_columns(data):
    width = data.draw(st.integers(1, 5))
    row = st.tuples(*[st.none() | st.integers(0, 3)] * width)
    stored = data.draw(st.lists(row, max_size=40, unique=True))
    wanted = data.draw(st.lists(row, min_size=1, max_size=40))
    expected = [stored.index(w) if w in stored else -1 for w in wanted]
    found = match_rows(columns_of(stored, width), columns_of(wanted, width))
    assert found.tolist() == expected


def columns_of(rows, width):
    return [pa.array([row[i] for row in rows], pa.int64()) for i in range(width)]


@settings(deadline=None)
@given(st.sampled_from(TYPES).flatmap(lambda t: st.tuples(st.just(t), st.lists(VALUES[t], min_size=1))), st.data())
def test_values_match_as_their_encodings_do(case, data):
    type_, wanted = case
    encode = KeyCodec([type_]).encode
    stored = list({encode((value,)): value for value in data.draw(st.lists(VALUES[type_])) + wanted[::2]}.values())
    places = {encode((value,)): place for place, value in enumerate(stored)}
    arrays = [pa.array(values, arrow_type(type_)) for values in (stored, wanted)]
    assert match_rows(arrays[:1], arrays[1:]).tolist() == [places.get(encode((value,)), -1) for value in wanted]


def test_the_two_zeros_match():
    assert match_rows([pa.array([1.0, -0.0, math.nan])], [pa.array([-math.nan, 0.0])]).tolist() == [2, 1]


@pytest.mark.parametrize("types", [(BIGINT,), (TEXT,), (TEXT, BIGINT)], ids=str)
def test_many_keys_at_once(tmp_path, types):
    store = Store(tmp_path)
    shape = store.shape(types, key=range(len(types)), row_group_rows=500)
    keys = [tuple(f"t{n:06d}" if t is TEXT else n for t in types) for n in range(0, 10_000, 2)]
    (segment,) = store.write(shape, keys)
    wanted = [tuple(f"t{n:06d}" if t is TEXT else n for t in types) for n in range(9_999, -1, -1)]
    expected = [n // 2 if n % 2 == 0 else -1 for n in range(9_999, -1, -1)]
    assert np.array_equal(store.reader(shape, segment).positions(wanted), expected)
