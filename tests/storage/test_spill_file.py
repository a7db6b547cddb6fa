"""Rows in a file are a sequence like any other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seachange import errors
from seachange.storage.spill_file import Spool


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_spooled_rows_behave_like_a_list(tmp_path_factory, sizes, data):
    spool = Spool(tmp_path_factory.getbasetemp() / "spool")
    numbers = iter(range(100))
    parts = [[(next(numbers), "x") for _ in range(size)] for size in sizes]
    for part in parts:
        spool.add(part)
    found, rows = spool.rows(), [row for part in parts for row in part]
    place = st.none() | st.integers(-len(rows) - 2, len(rows) + 2)
    for _ in range(5):
        cut = slice(data.draw(place), data.draw(place), data.draw(st.sampled_from([None, 1, -1, 2])))
        assert list(found[cut]) == rows[cut]
        assert len(found[cut]) == len(rows[cut])
        number = data.draw(st.integers(-len(rows), len(rows) - 1))
        assert found[number] == rows[number]
    with pytest.raises(IndexError):
        found[len(rows)]


def test_spool_limit_is_enforced(tmp_path):
    spool = Spool(tmp_path, bytes_max=1000)
    spool.add([("x" * 500,)])
    with pytest.raises(errors.OutOfTemporarySpace):
        spool.add([("x" * 500,)])
    assert list(spool.rows()) == [("x" * 500,)]
    assert list(tmp_path.iterdir()) == []
