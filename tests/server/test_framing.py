"""Rows framed by columns are, byte for byte, those framed one by one."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.server.framing import frame_rows
from seachange.server.messages import data_rows
from seachange.server.values import encoder
from seachange.sql.port.result import table_column
from seachange.values.types import Kind, SqlType

INTEGERS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}
VALUES = {
    **{kind: st.integers(-(1 << bits), (1 << bits) - 1) for kind, bits in INTEGERS.items()},
    Kind.DOUBLE: st.floats() | st.floats(1e-4, 1e15) | st.integers(-1000, 1000).map(float),
    Kind.BOOLEAN: st.booleans(),
    Kind.TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    Kind.NUMERIC: st.decimals(allow_nan=False, allow_infinity=False, places=2),
}


def one_by_one(rows, columns, formats):
    return data_rows(rows, [encoder(column, form) for column, form in zip(columns, formats, strict=True)])


@st.composite
def results(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    formats = [draw(st.sampled_from((0, 1))) for _ in kinds]
    row = st.tuples(*(st.none() | VALUES[kind] for kind in kinds))
    return [SqlType(kind) for kind in kinds], formats, draw(st.lists(row, min_size=1, max_size=30))


@settings(max_examples=300, deadline=None)
@given(results())
def test_by_columns_as_one_by_one(result):
    types, formats, rows = result
    columns = [table_column("c", type_) for type_ in types]
    assert frame_rows(rows, columns, formats) == one_by_one(rows, columns, formats)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.DOUBLE, [1e15, 1e-5, 5e-324, -0.0, math.inf, -math.inf, math.nan, 123456789012345.67]),
        (Kind.DOUBLE, [0.1, -0.0, 1e14, 999999999999999.9, 0.0001, -2.5, 3.0]),
        # The sum of integers is one.
        (Kind.NUMERIC, [1 << 90, Decimal("1.50"), None]),
    ],
)
def test_numbers_at_the_ends(kind, values):
    columns, rows = [table_column("c", SqlType(kind))], [(value,) for value in values]
    assert frame_rows(rows, columns, [0]) == one_by_one(rows, columns, [0])
