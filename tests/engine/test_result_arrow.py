"""Results as Arrow tables and DataFrames."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import seachange

COLUMNS = """
    a boolean, b smallint, c integer, d bigint, e real, f double precision, g numeric(10, 2), h numeric, i text,
    j varchar(5), k char(3), l bytea, m date, n time, o timestamp, p timestamptz, q interval, r uuid, s json, t jsonb,
    u inet, v cidr, w integer[], x uuid[], y colour, z numeric(4, 1)[]
"""
ROW = """
    true, 1, 2, 3, 1.5, 2.5, 3.14, 12.3456, 'text', 'abc', 'x', '\\x0102', '2026-01-02', '03:04:05.000006',
    '2026-01-02 03:04:05', '2026-01-02 03:04:05+00', '1 month 2 days', '00000000-0000-0000-0000-000000000001', '[1]',
    '{"a": 1}', '10.0.0.1', '10.0.0.0/8', '{1,null}', '{00000000-0000-0000-0000-000000000001}', 'red', '{1.5}'
"""
SHOWN = {
    "a": (True, pa.bool_()),
    "b": (1, pa.int16()),
    "c": (2, pa.int32()),
    "d": (3, pa.int64()),
    "e": (1.5, pa.float32()),
    "f": (2.5, pa.float64()),
    "g": (Decimal("3.14"), pa.decimal128(10, 2)),
    "h": (Decimal("12.3456"), pa.decimal128(38, 4)),
    "i": ("text", pa.string()),
    "j": ("abc", pa.string()),
    "k": ("x  ", pa.string()),
    "l": (b"\x01\x02", pa.binary()),
    "m": (dt.date(2026, 1, 2), pa.date32()),
    "n": (dt.time(3, 4, 5, 6), pa.time64("us")),
    "o": (dt.datetime(2026, 1, 2, 3, 4, 5), pa.timestamp("us")),
    "p": (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), pa.timestamp("us", tz="Asia/Tokyo")),
    "q": ("1 mon 2 days", pa.string()),
    "r": ("00000000-0000-0000-0000-000000000001", pa.string()),
    "s": ("[1]", pa.string()),
    "t": ('{"a": 1}', pa.string()),
    "u": ("10.0.0.1", pa.string()),
    "v": ("10.0.0.0/8", pa.string()),
    "w": ([1, None], pa.list_(pa.int32())),
    "x": (["00000000-0000-0000-0000-000000000001"], pa.list_(pa.string())),
    "y": ("red", pa.string()),
    "z": ([Decimal("1.5")], pa.list_(pa.decimal128(4, 1))),
}


@pytest.fixture
def db():
    with seachange.connect(":memory:", autocommit=True) as db:
        db.execute("set timezone = 'Asia/Tokyo'")
        db.execute("create type colour as enum ('red', 'blue')")
        db.execute(f"create table t ({COLUMNS})")
        yield db


def test_every_type_has_its_arrow_type_and_value(db):
    db.execute(f"insert into t values ({ROW})")
    table = db.execute("select * from t").fetch_arrow()
    (row,) = table.to_pylist()
    assert {name: (row[name], table.schema.field(name).type) for name in table.column_names} == SHOWN


def test_a_result_without_rows_has_the_same_schema(db):
    empty = db.execute("select * from t").fetch_arrow().schema
    # The scale of a numeric without a declared one is that of its values.
    assert [field.type for field in empty if field.name != "h"] == [t for name, (_, t) in SHOWN.items() if name != "h"]


def test_null_is_null_in_every_type(db):
    db.execute("insert into t (a) values (null)")
    (row,) = db.execute("select * from t").fetch_arrow().to_pylist()
    assert set(row.values()) == {None}


@pytest.mark.parametrize(
    ("query", "value", "type_"),
    [
        ("select null", None, pa.string()),
        (
            "select sum(g) from (values (99999999.99::numeric(10,2)), (99999999.99)) v (g)",
            Decimal("199999999.98"),
            None,
        ),
        ("select sum(d) from (values (9223372036854775807), (1)) v (d)", Decimal(9223372036854775808), None),
    ],
)
def test_values_are_exact(db, query, value, type_):
    column = db.execute(query).fetch_arrow().column(0)
    assert column.to_pylist() == [value]
    assert type_ is None or column.type == type_


def test_duplicate_column_names_are_kept(db):
    assert db.execute("select 1 as a, 2 as a").fetch_arrow().column_names == ["a", "a"]


def test_rows_that_were_fetched_are_left_out(db):
    cursor = db.execute("select i from generate_series(1, 5) i")
    assert cursor.fetchmany(2) == [(1,), (2,)]
    assert cursor.fetch_arrow().column(0).to_pylist() == [3, 4, 5]
    assert cursor.fetchall() == []


def test_frames_of_other_libraries_have_the_rows(db):
    query = "select i, 'n' || i as name from generate_series(1, 3) i"
    assert db.execute(query).fetch_df().to_dict("list") == {"i": [1, 2, 3], "name": ["n1", "n2", "n3"]}
    assert db.execute(query).fetch_polars().to_dict(as_series=False) == {"i": [1, 2, 3], "name": ["n1", "n2", "n3"]}


def test_a_statement_without_rows_has_no_table(db):
    with pytest.raises(seachange.Error, match="returned no rows"):
        db.execute("insert into t (a) values (true)").fetch_arrow()
