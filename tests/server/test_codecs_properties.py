"""Values of every type go in and come out as they were, as text and in binary, by the codecs of psycopg and asyncpg."""

import asyncio
import datetime as dt
import json
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from ipaddress import ip_interface, ip_network
from typing import Any

import asyncpg
import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Json, Jsonb

from seachange.values.types import Kind
from tests.support.serving import serving

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
SPANS = st.builds(dt.timedelta, days=st.integers(-40_000, 40_000), microseconds=st.integers(0, 86_399_999_999))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits), (1 << bits) - 1)


def decimals(places: int, digits: int) -> st.SearchStrategy[Decimal]:
    top = 10 ** (digits - places) - 1
    return st.decimals(-top, top, places=places, allow_nan=False, allow_infinity=False)


# By the type of a column, what it holds.
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "smallint": whole(15),
    "integer": whole(31),
    "bigint": whole(63),
    "real": st.floats(width=32).map(single),
    "double precision": st.floats(),
    "numeric(20,6)": decimals(6, 20),
    "text": TEXT,
    "character varying(20)": TEXT,
    "character(5)": st.text("abcäß", min_size=5, max_size=5),
    "name": st.text("abc_", max_size=10),
    "bytea": st.binary(max_size=20),
    "date": st.dates(),
    "time without time zone": st.times(),
    "timestamp without time zone": MOMENTS,
    "timestamp with time zone": MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "interval": SPANS,
    "uuid": st.uuids(),
    "json": DOCUMENTS,
    "jsonb": DOCUMENTS,
    "oid": st.integers(0, (1 << 32) - 1),
    "inet": st.ip_addresses() | st.tuples(st.ip_addresses(), st.integers(0, 31)).map(ip_interface),
    "cidr": st.tuples(st.ip_addresses(v=4), st.integers(0, 32)).map(lambda p: ip_network(p, strict=False)),
    "inet[]": st.lists(st.none() | st.ip_addresses(), max_size=4),
    "integer[]": st.lists(st.none() | whole(31), max_size=4),
    "text[]": st.lists(st.none() | TEXT, max_size=4),
    "double precision[]": st.lists(st.floats(), max_size=4),
    "numeric(12,2)[]": st.lists(decimals(2, 12), max_size=4),
    "boolean[]": st.lists(st.booleans(), max_size=4),
    "date[]": st.lists(st.dates(), max_size=4),
    "timestamp with time zone[]": st.lists(MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)), max_size=4),
    "uuid[]": st.lists(st.uuids(), max_size=4),
    "bytea[]": st.lists(st.binary(max_size=8), max_size=4),
}
# Shrinking takes minutes, and the type is printed anyway.
PHASES = (Phase.explicit, Phase.generate)
ROWS = st.lists(st.tuples(*(st.none() | values for values in COLUMNS.values())), min_size=1, max_size=3)
WRAPPED: dict[str, Callable[[Any], Any]] = {"json": Json, "jsonb": Jsonb}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("codecs")) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(COLUMNS))
            connection.execute(f"create table v (id int primary key, {columns})")
        yield served


def test_every_kind_of_type_is_here():
    kinds = {type_.split("(")[0].removesuffix("[]") for type_ in COLUMNS}
    assert kinds == {kind.value for kind in Kind if kind is not Kind.ARRAY}
    assert any(type_.endswith("[]") for type_ in COLUMNS)


def comparable(value: Any) -> Any:
    """NaN is one, and so is each of two zeros."""
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    return value


def same(found: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> None:
    for got, given_ in zip(found, rows, strict=True):
        for type_, one, other in zip(COLUMNS, got, given_, strict=True):
            # As text, a single is as short as it can be.
            read = single if type_ == "real" and one is not None else _as_is
            assert comparable(read(one)) == comparable(other), type_


@pytest.mark.parametrize("form", ["%t", "%b"])
def test_values_survive_a_round_trip_through_psycopg(served, form):
    with psycopg.connect(served.url, autocommit=True) as connection:
        marks = ", ".join(f"{form}::{type_}" for type_ in COLUMNS)
        insert = f"insert into v values (%s, {marks})"

        @settings(max_examples=12, deadline=None, phases=PHASES)
        @given(ROWS)
        def check(rows: list[tuple[Any, ...]]) -> None:
            connection.execute("delete from v")
            for number, row in enumerate(rows):
                wrapped = [
                    value if value is None else WRAPPED.get(type_, _as_is)(value)
                    for type_, value in zip(COLUMNS, row, strict=True)
                ]
                connection.execute(insert, (number, *wrapped))
            for binary in (False, True):
                found = connection.execute("select * from v order by id", binary=binary).fetchall()
                same([row[1:] for row in found], rows)

        check()


def test_values_survive_a_round_trip_through_asyncpg(served):
    # Each driver gets the types from the server, and sends all values in binary.
    marks = ", ".join(f"${number}" for number in range(1, len(COLUMNS) + 2))

    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(served.url))
        for name in ("json", "jsonb"):
            codec = connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
            runner.run(codec)

        async def talk(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            await connection.execute("delete from v")
            await connection.executemany(
                f"insert into v values ({marks})", [(number, *row) for number, row in enumerate(rows)]
            )
            return [tuple(row)[1:] for row in await connection.fetch("select * from v order by id")]

        @settings(max_examples=12, deadline=None, phases=PHASES)
        @given(ROWS)
        def check(rows: list[tuple[Any, ...]]) -> None:
            same(runner.run(talk(rows)), rows)

        check()
        runner.run(connection.close())


def _as_is(value: Any) -> Any:
    return value
