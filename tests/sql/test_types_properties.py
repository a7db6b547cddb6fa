"""Values of every type through every way into and out of a table: they come back as they were, and as PostgreSQL shows
them."""

import datetime as dt
import io
import json
import math
from decimal import Decimal
from ipaddress import ip_interface, ip_network
from itertools import count
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import seachange
from seachange.sql.duck.stream import ROWS_MAX
from seachange.storage.arrow import arrow_type
from seachange.values.binary_form import decode_binary, encode_binary
from seachange.values.coercion import coerce
from seachange.values.interval import Interval
from seachange.values.json_text import normalize_json
from seachange.values.output_format import show_text
from seachange.values.types import Kind, SqlType, array_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
WORDS = st.text("aB ,\"\\{}'\t\n\r.NUL", max_size=6)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000, places=3) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
WHOLE = st.integers(-(10**20) + 1, 10**20 - 1).map(Decimal)
INTERVALS = st.builds(
    Interval, st.integers(-120_000, 120_000), st.integers(-(10**6), 10**6), st.integers(-(10**15), 10**15)
)


def as_json(value: Any) -> str:
    return json.dumps(value, default=float, ensure_ascii=False)


MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
# The type, and values as clients give and get them.
SAMPLES: dict[SqlType, st.SearchStrategy[Any]] = {
    SqlType(Kind.BOOLEAN): st.booleans(),
    SqlType(Kind.SMALLINT): st.integers(-(2**15), 2**15 - 1),
    SqlType(Kind.INTEGER): st.integers(-(2**31), 2**31 - 1),
    SqlType(Kind.BIGINT): st.integers(-(2**63), 2**63 - 1),
    SqlType(Kind.REAL): st.floats(width=32),
    SqlType(Kind.DOUBLE): st.floats(),
    SqlType(Kind.NUMERIC, 12, 3): st.decimals(-(10**9) + 1, 10**9 - 1, places=3),
    SqlType(Kind.NUMERIC, 38, 0): st.decimals(-(10**38) + 1, 10**38 - 1, places=0),
    SqlType(Kind.NUMERIC): WHOLE | st.just(Decimal("0.25")),
    SqlType(Kind.TEXT): TEXTS | WORDS,
    SqlType(Kind.VARCHAR, length=12): TEXTS,
    SqlType(Kind.CHAR, length=12): TEXTS.map(lambda text: text.rstrip(" ").ljust(12)),
    SqlType(Kind.NAME): TEXTS,
    SqlType(Kind.BYTEA): st.binary(max_size=8),
    SqlType(Kind.DATE): st.dates(),
    SqlType(Kind.TIME): st.times(),
    SqlType(Kind.TIMESTAMP): MOMENTS,
    SqlType(Kind.TIMESTAMPTZ): MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    SqlType(Kind.TIMESTAMP, scale=3): MOMENTS.map(lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000)),
    SqlType(Kind.INTERVAL): INTERVALS,
    SqlType(Kind.UUID): st.uuids(),
    SqlType(Kind.JSON): DOCUMENTS.map(as_json),
    SqlType(Kind.JSONB): DOCUMENTS.map(as_json).map(normalize_json),
    SqlType(Kind.OID): st.integers(0, 2**32 - 1),
    SqlType(Kind.INET): st.ip_addresses() | st.tuples(st.ip_addresses(), st.integers(0, 31)).map(ip_interface),
    SqlType(Kind.CIDR): st.tuples(st.ip_addresses(), st.integers(0, 32)).map(lambda p: ip_network(p, strict=False)),
}
ELEMENTS = [t for t in SAMPLES if t.kind not in (Kind.CHAR, Kind.NAME, Kind.SMALLINT, Kind.OID)]
SAMPLES |= {array_of(t): st.lists(st.none() | SAMPLES[t], max_size=4) for t in ELEMENTS}
# In binary, items of a list of numbers come as numbers without a length, which have at most 20 digits before the point.
SAMPLES[array_of(SqlType(Kind.NUMERIC, 38, 0))] = st.lists(WHOLE, max_size=4)
TYPES = tuple(SAMPLES)
NAMES = [f"c{i}" for i in range(len(TYPES))]
ROWS = st.lists(st.tuples(*(st.none() | SAMPLES[t] for t in TYPES)), min_size=3, max_size=5)
# Rows of so many columns are not worth shrinking: the type that differs is named.
CHECKED = settings(
    max_examples=4,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)

ids = count(1)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def columns() -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in zip(NAMES, TYPES, strict=True))


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with seachange.connect(tmp_path_factory.mktemp("types") / "db", autocommit=True) as connection:
        connection.execute(f"create table t (id bigint primary key, {columns()})")
        yield connection


def literal(type_: SqlType, value: Any) -> str:
    text = show_text(type_, value)
    return "null" if text is None else "'" + text.replace("'", "''") + "'"


def expect(db, query: str, rows: list[tuple[int, tuple[Any, ...]]]) -> None:
    found = db.execute(query).fetchall()
    assert [row[0] for row in found] == [id_ for id_, _ in rows]
    for row, (_, values) in zip(found, rows, strict=True):
        for type_, got, value in zip(TYPES, row[1:], values, strict=True):
            assert same(got, value), f"{type_}: {value!r} became {got!r}"


def binary_fields(data: bytes) -> list[bytes | None]:
    """Of COPY in binary format: a header of 19 bytes; for each row the number of fields, and these with lengths."""
    fields: list[bytes | None] = []
    position = 19
    while (width := int.from_bytes(data[position : position + 2], signed=True)) >= 0:
        position += 2
        for _ in range(width):
            length = int.from_bytes(data[position : position + 4], signed=True)
            position += 4
            fields.append(None if length < 0 else data[position : position + length])
            position += max(length, 0)
    return fields


def arrow_of(rows: list[tuple[int, tuple[Any, ...]]]) -> pa.Table:
    arrays = [pa.array([id_ for id_, _ in rows], pa.int64())]
    for i, type_ in enumerate(TYPES):
        arrays.append(pa.array([coerce(type_, values[i]) for _, values in rows], arrow_type(type_)))
    return pa.Table.from_arrays(arrays, ["id", *NAMES])


@CHECKED
@given(ROWS)
def test_every_way_in_and_out(db, rows):
    db.execute("truncate t")
    numbered = [(next(ids), row) for row in rows]
    marks = ", ".join(f"${i}" for i in range(1, len(TYPES) + 2))
    for id_, values in numbered:
        db.execute(f"insert into t values ({marks})", (id_, *values))
    expect(db, "select * from t order by id", numbered)
    for id_, values in numbered:
        expect(db, f"select * from t where id = {id_}", [(id_, values)])
    # As literals, and by a query of DuckDB.
    literals = [(next(ids), row) for row in rows]
    for id_, values in literals:
        written = ", ".join(literal(t, v) for t, v in zip(TYPES, values, strict=True))
        db.execute(f"insert into t values ({id_}, {written})")
    expect(db, f"select * from t where id >= {literals[0][0]} order by id", literals)
    shift = 1_000_000
    listed = ", ".join(NAMES)
    db.execute(f"insert into t select id + {shift}, {listed} from t")
    copied = [(id_ + shift, row) for id_, row in numbered + literals]
    expect(db, f"select * from t where id > {shift} order by id", copied)
    # Files, both ways.
    everything = numbered + literals + copied
    for format_ in ("csv", "text"):
        file = io.StringIO()
        db.copy_to("select * from t order by id", file, format=format_)
        db.execute("truncate t")
        file.seek(0)
        db.copy_from("t", file, format=format_)
        expect(db, "select * from t order by id", everything)
    # Arrow, segments, and what supersedes them.
    db.execute("truncate t")
    db.load_arrow("t", arrow_of(numbered))
    expect(db, "select * from t order by id", numbered)
    db.execute("update t set id = id + 1 - 1")
    first, second = numbered[0], numbered[-1]
    assignments = ", ".join(f"{name} = ${i}" for i, name in enumerate(NAMES, 1))
    db.execute(f"update t set {assignments} where id = {first[0]}", second[1])
    changed = [(first[0], second[1]), *numbered[1:]]
    expect(db, "select * from t order by id", changed)
    db.compact("t")
    expect(db, "select * from t order by id", changed)
    expect(db, f"select * from t where id = {first[0]}", changed[:1])


def test_many_rows_at_once(db):
    """More than go through the buffer: by a query, as a load, changed in bulk, and as they were before."""
    db.execute("truncate t")
    strategy = st.tuples(*(SAMPLES[t] for t in TYPES))
    found: list[tuple[Any, ...]] = []

    @settings(CHECKED, max_examples=1)
    @given(st.lists(strategy, min_size=3, max_size=3))
    def draw(rows):
        found.extend(rows)

    draw()
    rows = list(enumerate(found, 1))
    db.load_arrow("t", arrow_of(rows))
    listed = ", ".join(NAMES)
    times = ROWS_MAX // 3 + 1
    db.execute(f"insert into t select t.id + 3 * i, {listed} from t, generate_series(1, {times}) as g(i)")
    ((total,),) = db.execute("select count(*) from t").fetchall()
    assert total == 3 * (times + 1)
    last = [(3 * times + id_, row) for id_, row in rows]
    expect(db, f"select * from t where id > {3 * times} order by id", last)
    db.execute(f"update t set {NAMES[0]} = not {NAMES[0]} where {NAMES[0]} is not null")
    turned = [(id_, (None if row[0] is None else not row[0], *row[1:])) for id_, row in last]
    expect(db, f"select * from t where id > {3 * times} order by id", turned)
    db.compact("t")
    expect(db, f"select * from t where id > {3 * times} order by id", turned)


@CHECKED
@given(ROWS)
def test_shown_as_by_postgresql(db, postgres_url, rows):
    db.execute("truncate t")
    numbered = [(next(ids), row) for row in rows]
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("set timezone = 'UTC'")
        other.execute(f"create temp table t (id bigint primary key, {columns()})")
        for id_, values in numbered:
            written = ", ".join(literal(t, v) for t, v in zip(TYPES, values, strict=True))
            for target in (db, other):
                target.execute(f"insert into t values ({id_}, {written})")
        file = io.StringIO()
        db.copy_to("select * from t order by id", file, format="text")
        with other.cursor().copy("copy (select * from t order by id) to stdout") as copy:
            expected = b"".join(bytes(part) for part in copy).decode()
        query = f"copy (select {', '.join(NAMES)} from t order by id) to stdout (format binary)"
        with other.cursor().copy(query) as copy:
            fields_of = binary_fields(b"".join(bytes(part) for part in copy))
        for type_, data, value in zip(TYPES * len(rows), fields_of, [v for row in rows for v in row], strict=True):
            assert data == (None if value is None else encode_binary(type_, value)), type_
            assert data is None or same(decode_binary(type_, data), value), type_
    records = zip(file.getvalue().split("\n"), expected.split("\n"), strict=True)
    fields = [pair for got, wanted in records for pair in zip(got.split("\t")[1:], wanted.split("\t")[1:], strict=True)]
    differing = [(str(t), *pair) for t, pair in zip(TYPES * len(rows), fields, strict=True) if pair[0] != pair[1]]
    assert not differing


KEYS = [t for t in TYPES if t.is_key and t.element is None]


@settings(CHECKED, max_examples=6)
@given(st.lists(st.tuples(*(SAMPLES[t] for t in KEYS)), min_size=2, max_size=4))
def test_looked_up_by_an_index(indexed, rows):
    indexed.execute("truncate k")
    for number, row in enumerate(rows):
        indexed.execute(f"insert into k values ({', '.join(f'${i}' for i in range(1, len(KEYS) + 2))})", (number, *row))
    for place, type_ in enumerate(KEYS):
        for row in rows:
            held = coerce(type_, row[place])
            wanted = [n for n, other in enumerate(rows) if same(coerce(type_, other[place]), held)]
            found = indexed.execute(f"select id from k where k{place} = $1", (row[place],)).fetchall()
            if not (isinstance(held, float) and math.isnan(held)):
                assert sorted(id_ for (id_,) in found) == wanted, type_


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    with seachange.connect(tmp_path_factory.mktemp("keys") / "db", autocommit=True) as connection:
        listed = ", ".join(f"k{i} {type_}" for i, type_ in enumerate(KEYS))
        connection.execute(f"create table k (id bigint primary key, {listed})")
        for i in range(len(KEYS)):
            connection.execute(f"create index on k (k{i})")
        yield connection
