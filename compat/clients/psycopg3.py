"""psycopg 3: parameters and results in both formats, pipelines, COPY, cursors, cancelling, asyncio."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import uuid
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from compat.features import Features, expect

feature = Features()
ROWS = 5_000

# By type: a value that there is only one text and one Python object for.
VALUES: dict[str, Any] = {
    "boolean": True,
    "smallint": -32768,
    "integer": 2_147_483_647,
    "bigint": -(2**63),
    "real": 1.5,
    "double precision": 0.1,
    "numeric(20, 4)": Decimal("12345678901234.5678"),
    "text": "naïve ✓ 'quoted' \\ back",
    "varchar(10)": "ten",
    "bytea": b"\x00\xff\\'",
    "date": dt.date(2024, 2, 29),
    "time": dt.time(23, 59, 59, 999_999),
    "timestamp": dt.datetime(1999, 12, 31, 23, 59, 59, 123_456),
    "timestamptz": dt.datetime(2024, 7, 1, 12, 0, 0, 1, tzinfo=dt.UTC),
    "interval": dt.timedelta(days=3, hours=4, microseconds=5),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "jsonb": {"a": [1, None, "x"]},
    "integer[]": [1, None, -3],
    "text[]": ["a", "b,c", None, '"'],
}


def connect(url: str, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, **options)


@feature("values as text")
def values_as_text(url: str) -> None:
    check_values(url, binary=False)


@feature("values in binary")
def values_in_binary(url: str) -> None:
    check_values(url, binary=True)


def check_values(url: str, binary: bool) -> None:
    """Values survive a round trip through a column of each type, and through a cast of a parameter."""
    form = "%b" if binary else "%s"
    with connect(url) as connection:
        connection.execute("drop table if exists v")
        columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(VALUES))
        connection.execute(f"create table v (id int primary key, {columns})")
        given = [Jsonb(value) if isinstance(value, dict) else value for value in VALUES.values()]
        connection.execute(f"insert into v values (1{f', {form}' * len(given)})", given)
        connection.execute("insert into v (id) values (2)")
        cursor = connection.cursor(binary=binary)
        rows = cursor.execute("select * from v order by id").fetchall()
        expect(rows, [(1, *VALUES.values()), (2, *[None] * len(VALUES))])
        for type_, value in zip(VALUES, given, strict=True):
            found = cursor.execute(f"select {form}::{type_}", [value]).fetchone()
            expect(found, (VALUES[type_],))


@feature("prepared statements")
def prepared(url: str) -> None:
    with connect(url, prepare_threshold=0) as connection:
        for number in range(20):
            expect(connection.execute("select %s::int * 2", [number]).fetchone(), (number * 2,))
        named = "select count(*) from pg_prepared_statements where statement like '%* 2'"
        expect(connection.execute(named, prepare=False).fetchone(), (1,))
        connection.execute("deallocate all")


@feature("transactions and savepoints")
def transactions(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table s (id int primary key)")
        connection.commit()
        with connection.transaction():
            connection.execute("insert into s values (1)")
            try:
                with connection.transaction():
                    connection.execute("insert into s values (2), (1)")
            except psycopg.errors.UniqueViolation:
                pass
            connection.execute("insert into s values (3)")
        expect(connection.execute("select id from s order by id").fetchall(), [(1,), (3,)])
        connection.rollback()
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        expect(connection.execute("show transaction_isolation").fetchone(), ("serializable",))


@feature("pipeline")
def pipeline(url: str) -> None:
    with connect(url) as connection:
        connection.execute("create table p (id int primary key, n int)")
        with connection.pipeline() as pipe:
            cursors = [connection.execute("insert into p values (%s, %s) returning n", [n, n * n]) for n in range(50)]
            pipe.sync()
            expect([cursor.fetchone() for cursor in cursors], [(n * n,) for n in range(50)])
            failing = connection.execute("select 1 / %s", [0])
            try:
                pipe.sync()
                failing.fetchone()
                raise AssertionError("no error")
            except psycopg.errors.DivisionByZero:
                pass
        expect(connection.execute("select count(*), sum(n) from p").fetchone(), (50, 40425))


@feature("executemany")
def many(url: str) -> None:
    with connect(url) as connection:
        connection.execute("create table m (id int primary key, word text)")
        cursor = connection.cursor()
        cursor.executemany("insert into m values (%s, %s)", [(n, f"w{n}") for n in range(200)])
        expect(cursor.rowcount, 200)
        cursor.executemany("update m set word = %s where id = %s returning id", [("x", 1), ("y", 2)], returning=True)
        expect(cursor.fetchone(), (1,))
        expect(cursor.nextset(), True)
        expect(cursor.fetchone(), (2,))


@feature("COPY in and out, text")
def copy_text(url: str) -> None:
    with connect(url) as connection:
        connection.execute("create table c (id int primary key, word text, at date)")
        with connection.cursor().copy("copy c from stdin") as copy:
            for number in range(ROWS):
                copy.write_row((number, f"w\t{number}\\", dt.date(2024, 1, 1)))
        with connection.cursor().copy("copy (select * from c where id < 2 order by id) to stdout") as copy:
            copy.set_types(["int4", "text", "date"])
            expect(list(copy.rows()), [(n, f"w\t{n}\\", dt.date(2024, 1, 1)) for n in range(2)])
        expect(connection.execute("select count(*) from c").fetchone(), (ROWS,))


@feature("COPY in and out, binary")
def copy_binary(url: str) -> None:
    with connect(url) as connection:
        connection.execute("create table cb (id int primary key, word text, amount numeric, at timestamptz)")
        row = ("word", Decimal("1.25"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
        with connection.cursor().copy("copy cb from stdin (format binary)") as copy:
            copy.set_types(["int4", "text", "numeric", "timestamptz"])
            for number in range(100):
                copy.write_row((number, *row))
        with connection.cursor().copy("copy (select * from cb order by id) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text", "numeric", "timestamptz"])
            expect(list(copy.rows()), [(n, *row) for n in range(100)])


@feature("server-side cursors")
def cursors(url: str) -> None:
    with psycopg.connect(url) as connection, connection.cursor("numbers", scrollable=True) as cursor:
        cursor.execute("select x from generate_series(1, 1000) as s(x)")
        expect(cursor.fetchmany(3), [(1,), (2,), (3,)])
        cursor.scroll(500, mode="absolute")
        expect(cursor.fetchone(), (501,))


@feature("errors and notices")
def errors(url: str) -> None:
    told: list[str] = []
    with connect(url) as connection:
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        connection.execute("create table e (id int primary key, n int check (n > 0))")
        connection.execute("create table if not exists e (id int)")
        expect(told, ['relation "e" already exists, skipping'])
        for statement, code, constraint in (
            ("insert into e values (1, 0)", "23514", "e_n_check"),
            ("insert into e values (null, 1)", "23502", None),
            ("select * from nowhere", "42P01", None),
            ("selec 1", "42601", None),
        ):
            try:
                connection.execute(statement)
            except psycopg.Error as error:
                expect((error.diag.sqlstate, error.diag.constraint_name), (code, constraint))
            else:
                raise AssertionError(f"{statement} worked")


@feature("cancel")
def cancel(url: str) -> None:
    with connect(url) as connection:
        timer = threading.Timer(0.5, connection.cancel_safe)
        timer.start()
        try:
            connection.execute("select count(*) from generate_series(1, 100000000) a(x), generate_series(1, 1000) b(y)")
            raise AssertionError("not cancelled")
        except psycopg.errors.QueryCanceled:
            pass
        timer.join()
        expect(connection.execute("select 1").fetchone(), (1,))


@feature("streamed rows")
def streamed(url: str) -> None:
    with connect(url, row_factory=dict_row) as connection:
        rows = connection.cursor().stream("select x, x * x as y from generate_series(1, 2000) as s(x)")
        expect(sum(row["y"] for row in rows), 2_668_667_000)


@feature("asyncio")
def asynchronous(url: str) -> None:
    async def talk() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("create table a (id int primary key)")
            async with connection.pipeline():
                for number in range(10):
                    await connection.execute("insert into a values (%s)", [number])
            cursor = await connection.execute("select sum(id) from a")
            expect(await cursor.fetchone(), (45,))
            async with connection.cursor().copy("copy a to stdout") as copy:
                expect(len([row async for row in copy.rows()]), 10)

    asyncio.run(talk())


if __name__ == "__main__":
    feature.run()
