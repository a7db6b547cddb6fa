"""pg8000, a driver in pure Python: both of its interfaces."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pg8000.dbapi
import pg8000.native

from compat.features import Features, expect

feature = Features()


def options(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "user": parts.username,
        "password": parts.password,
        "host": parts.hostname,
        "port": parts.port,
        "database": parts.path[1:],
    }


@feature("values")
def values(url: str) -> None:
    with pg8000.native.Connection(**options(url)) as connection:
        connection.run(
            "create table v (a int primary key, b numeric, c text, d bytea, e date, f timestamptz, g uuid, h jsonb,"
            " i int[], j boolean)"
        )
        row = [1, Decimal("1.5"), "é", b"\0\1", dt.date(2024, 1, 2), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
        row += [uuid.UUID(int=7), {"a": [1]}, [1, None], True]
        names = "abcdefghij"
        connection.run(
            f"insert into v values ({', '.join(':' + name for name in names)})",
            **{**dict(zip(names, row, strict=True)), "h": '{"a": [1]}'},
        )
        expect(connection.run("select * from v"), [row])
        expect([column["name"] for column in connection.columns or ()], list(names))


@feature("prepared statements")
def prepared(url: str) -> None:
    with pg8000.native.Connection(**options(url)) as connection:
        statement = connection.prepare("select cast(:n as integer) + 1")
        expect([statement.run(n=number) for number in range(5)], [[[number + 1]] for number in range(5)])
        statement.close()


@feature("transactions")
def transactions(url: str) -> None:
    connection = pg8000.dbapi.connect(**options(url))
    cursor = connection.cursor()
    cursor.execute("create table s (id int primary key)")
    connection.commit()
    cursor.executemany("insert into s values (%s)", [[1], [2]])
    connection.rollback()
    cursor.execute("insert into s values (%s) returning id", [3])
    expect(tuple(cursor.fetchone()), (3,))
    connection.commit()
    cursor.execute("select count(*) from s")
    expect(tuple(cursor.fetchone()), (1,))
    connection.close()


@feature("errors")
def errors(url: str) -> None:
    with pg8000.native.Connection(**options(url)) as connection:
        connection.run("create table e (id int primary key)")
        connection.run("insert into e values (1)")
        try:
            connection.run("insert into e values (1)")
        except pg8000.exceptions.DatabaseError as error:
            expect((error.args[0]["C"], error.args[0]["n"]), ("23505", "e_pkey"))
        else:
            raise AssertionError("no error")


@feature("COPY")
def copy(url: str) -> None:
    with pg8000.native.Connection(**options(url)) as connection:
        connection.run("create table c (id int primary key, word text)")
        connection.run("copy c from stdin with (format csv)", stream=io.BytesIO(b'1,"a,b"\n2,c\n'))
        out = io.BytesIO()
        connection.run("copy (select * from c order by id) to stdout with (format csv)", stream=out)
        expect(out.getvalue(), b'1,"a,b"\n2,c\n')


@feature("notices and settings")
def notices(url: str) -> None:
    with pg8000.native.Connection(**options(url), application_name="compat") as connection:
        connection.run("drop table if exists nothing")
        expect(connection.notices[0][b"C"], b"00000")
        expect(connection.run("show application_name"), [["compat"]])
        connection.run("set timezone to 'Europe/Paris'")
        expect(connection.parameter_statuses["TimeZone"], "Europe/Paris")


if __name__ == "__main__":
    feature.run()
