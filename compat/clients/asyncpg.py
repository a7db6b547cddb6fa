"""asyncpg: all values in binary, types queried from the server, cursors, COPY, pools."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg

from compat.features import Features, expect

feature = Features()
Talk = Callable[[Any], Awaitable[None]]


def connected(name: str) -> Callable[[Talk], Talk]:
    """A feature that gets a connection."""

    def add(talk: Talk) -> Talk:
        async def run(url: str) -> None:
            connection = await asyncpg.connect(url)
            try:
                await talk(connection)
            finally:
                await connection.close()

        feature(name)(lambda url: asyncio.run(run(url)))
        return talk

    return add


@connected("values")
async def values(connection: Any) -> None:
    await connection.execute(
        "create table v (a smallint, b int, c bigint, d real, e float8, f numeric, g text, h bytea, i date, j time,"
        " k timestamp, l timestamptz, m interval, n uuid, o jsonb, p int[], q text[], r boolean, s char(3))"
    )
    given = (
        *(1, 2, 3, 0.5, 0.1, Decimal("1e-7"), "ü", b"\0", dt.date(2024, 2, 29), dt.time(1, 2, 3)),
        *(dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.timedelta(days=1, seconds=2)),
        *(uuid.UUID(int=5), json.dumps({"a": 1}), [1, None], ["x", "y"], False, "abc"),
    )
    marks = ", ".join(f"${number + 1}" for number in range(len(given)))
    await connection.execute(f"insert into v values ({marks})", *given)
    row = await connection.fetchrow("select * from v")
    expect({**row, "o": json.loads(row["o"])}, {**dict(zip(row.keys(), given, strict=True)), "o": {"a": 1}})


@connected("types of parameters")
async def parameter_types(connection: Any) -> None:
    await connection.execute("create table t (id bigint primary key, name varchar(20), at timestamptz)")
    statement = await connection.prepare("insert into t values ($1, $2, $3) returning id, name")
    expect([type_.name for type_ in statement.get_parameters()], ["int8", "varchar", "timestamptz"])
    expect([(each.name, each.type.name) for each in statement.get_attributes()], [("id", "int8"), ("name", "varchar")])
    expect(tuple(await statement.fetchrow(1, "x", None)), (1, "x"))
    for query, wanted in (
        ("select * from t where id = $1", ["int8"]),
        ("select $1::int[] || 4", ["int4[]"]),
        ("select * from t where id = any($1::bigint[]) limit $2", ["int8[]", "int8"]),
    ):
        expect([type_.name for type_ in (await connection.prepare(query)).get_parameters()], wanted)


@connected("enum types")
async def enums(connection: Any) -> None:
    await connection.execute("create type mood as enum ('sad', 'happy')")
    await connection.execute("create table m (id int primary key, mood mood, moods mood[])")
    await connection.execute("insert into m values (1, $1, $2)", "happy", ["sad", "happy"])
    expect(dict(await connection.fetchrow("select mood, moods from m")), {"mood": "happy", "moods": ["sad", "happy"]})


@connected("codecs of types")
async def codecs(connection: Any) -> None:
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    expect(await connection.fetchval("select $1::jsonb", {"x": [1]}), {"x": [1]})


@connected("transactions and savepoints")
async def transactions(connection: Any) -> None:
    await connection.execute("create table s (id int primary key)")
    async with connection.transaction(isolation="serializable"):
        await connection.execute("insert into s values (1)")
        try:
            async with connection.transaction():
                await connection.execute("insert into s values (2), (2)")
        except asyncpg.UniqueViolationError as error:
            expect(error.constraint_name, "s_pkey")
        await connection.execute("insert into s values (3)")
    expect([row["id"] for row in await connection.fetch("select id from s order by id")], [1, 3])


@connected("cursors")
async def cursors(connection: Any) -> None:
    async with connection.transaction():
        found = [row["x"] async for row in connection.cursor("select x from generate_series(1, 500) s(x)", prefetch=7)]
        expect(found, list(range(1, 501)))
        cursor = await connection.cursor("select x from generate_series(1, 500) s(x)")
        await cursor.forward(100)
        expect((await cursor.fetchrow())["x"], 101)


@connected("executemany")
async def many(connection: Any) -> None:
    await connection.execute("create table n (id int primary key, word text)")
    await connection.executemany("insert into n values ($1, $2)", [(n, str(n)) for n in range(300)])
    expect(await connection.fetchval("select count(*) from n"), 300)


@connected("COPY")
async def copy(connection: Any) -> None:
    await connection.execute("create table c (id int primary key, word text)")
    tag = await connection.copy_records_to_table("c", records=[(n, f"w{n}") for n in range(100)])
    expect(tag, "COPY 100")
    lines: list[bytes] = []

    async def take(data: bytes) -> None:
        lines.append(data)

    await connection.copy_from_query("select * from c where id < $1 order by id", 2, output=take, format="csv")
    expect(b"".join(lines), b"0,w0\n1,w1\n")


@connected("cancel by timeout")
async def timeout(connection: Any) -> None:
    try:
        await connection.execute(
            "select count(*) from generate_series(1, 100000000) a(x), generate_series(1, 1000) b(y)", timeout=0.5
        )
        raise AssertionError("not cancelled")
    except TimeoutError:
        pass
    expect(await connection.fetchval("select 1"), 1)


@feature("pool")
def pool(url: str) -> None:
    async def talk() -> None:
        async with asyncpg.create_pool(url, min_size=2, max_size=4) as pool:
            found = await asyncio.gather(*(pool.fetchval("select $1::int", number) for number in range(20)))
            expect(found, list(range(20)))

    asyncio.run(talk())


@connected("description of types after a change")
async def changed(connection: Any) -> None:
    await connection.execute("create table d (id int primary key)")
    await connection.fetch("select * from d")
    await connection.execute("alter table d add column word text default 'x'")
    await connection.execute("insert into d (id) values (1)")
    try:
        found = await connection.fetch("select * from d")
    except asyncpg.InvalidCachedStatementError:
        found = await connection.fetch("select * from d")
    expect([dict(row) for row in found], [{"id": 1, "word": "x"}])


if __name__ == "__main__":
    feature.run()
