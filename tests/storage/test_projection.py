"""Reading an old layout as a newer version: Python rows and DuckDB's must say the same."""

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column
from seachange.storage.arrow import schema_of
from seachange.storage.duck import Duck
from seachange.storage.projection import Frozen, Stored, compile_row, select_list, sources
from seachange.values.canonical import format_canonical, parse_canonical
from seachange.values.types import BIGINT, TEXT, WIDENINGS, Kind, SqlType
from tests.storage.samples import TYPES, VALUES, same

DUCK = Duck(Path(tempfile.gettempdir()))
STORED = ((ColumnId(1), BIGINT), (ColumnId(2), TEXT), (ColumnId(3), SqlType(Kind.INTEGER)))


def column(id_: int, type_: SqlType, frozen: str | None = None) -> Column:
    return Column(ColumnId(id_), f"column {id_}", type_, frozen=frozen)


def read(stored: Any, columns: list[Column], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What DuckDB makes of a stored row, by way of Arrow."""
    schema = schema_of(stored)
    table = pa.Table.from_arrays([pa.array([v], f.type) for v, f in zip(row, schema, strict=True)], schema=schema)
    with DUCK.cursor() as cursor:
        cursor.register("stored", table)
        found = cursor.sql(f"SELECT {select_list(stored, columns)} FROM stored").to_arrow_table()
    wanted = schema_of((c.id, c.type) for c in columns)
    return tuple(_value(found.column(f.name), f.type) for f in wanted)


def _value(values: pa.ChunkedArray, type_: pa.DataType) -> Any:
    if isinstance(type_, pa.BaseExtensionType):
        text = values[0].as_py()
        return None if text is None else UUID(str(text))
    return values.cast(type_)[0].as_py()


def test_where_columns_come_from():
    columns = [column(3, BIGINT), column(4, TEXT, "x"), column(1, BIGINT), column(5, TEXT)]
    assert sources(STORED, columns) == (Stored(2, STORED[2][1]), Frozen("x"), Stored(0, BIGINT), Frozen(None))
    project = compile_row(STORED, columns)
    assert project is not None
    assert project((1, "a", 3)) == (3, "x", 1, None)


def test_the_same_columns_need_no_projection():
    assert compile_row(STORED, [column(c, t) for c, t in STORED]) is None
    assert compile_row(STORED, [column(c, t) for c, t in STORED[:2]]) is not None


@settings(max_examples=150)
@given(st.data())
def test_a_frozen_value_of_any_type(data: st.DataObject):
    type_ = data.draw(st.sampled_from(TYPES))
    value = data.draw(VALUES[type_])
    if isinstance(value, str) and "\x00" in value:
        # DuckDB's text literals end there; a client cannot send such a text.
        value = value.replace("\x00", "")
    added = column(4, type_, format_canonical(type_, value))
    columns = [column(1, BIGINT), added]
    project = compile_row(STORED, columns)
    assert project is not None
    in_python, in_duckdb = project((1, "a", 3)), read(STORED, columns, (1, "a", 3))
    assert same(in_python[1], value)
    assert same(in_duckdb[1], value)


# DuckDB returns addresses as bits.
@pytest.mark.parametrize(("old", "new"), sorted(WIDENINGS - {(Kind.CIDR, Kind.INET)}))
def test_a_widened_value(old: Kind, new: Kind):
    samples = {Kind.SMALLINT: -5, Kind.INTEGER: 1 << 30, Kind.REAL: 0.10000000149011612, Kind.VARCHAR: "é"}
    samples |= {Kind.NAME: "é", Kind.OID: (1 << 32) - 1, Kind.JSONB: "[1, 2]"}
    stored = ((ColumnId(1), SqlType(old)),)
    columns = [column(1, SqlType(new))]
    row = (samples[old],)
    project = compile_row(stored, columns)
    assert (row if project is None else project(row)) == read(stored, columns, row) == row


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (SqlType(Kind.NUMERIC, 38, 10), Decimal("-1.5")),
        (SqlType(Kind.TIMESTAMPTZ), dt.datetime(2020, 2, 29, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
        (SqlType(Kind.BYTEA), b"\x00'\\\xff"),
        (SqlType(Kind.DOUBLE), float("inf")),
        (TEXT, "it's"),
        (TEXT, None),
    ],
)
def test_canonical_text_of_a_value(type_: SqlType, value: Any):
    assert parse_canonical(type_, format_canonical(type_, value)) == value
