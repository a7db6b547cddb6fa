"""psql and asyncpg against the server, and the command itself."""

import asyncio
import datetime as dt
import os
import re
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import asyncpg
import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.postgres import OLDEST_VERSION, Account, find_binaries
from tests.support.serving import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


def run_psql(url: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    psql = find_binaries(OLDEST_VERSION, Path(), Account()) / "psql"
    command = [str(psql), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", *arguments, url]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S)


def test_psql_runs_a_script_with_copy(served):
    script = (
        "create table p (id int primary key, name text);\n"
        "\\copy p from stdin\n1\ta\n2\t\\N\n\\.\n"
        "begin; update p set name = 'b' where id = 2; commit;\n"
        "select * from p order by id;\n"
        "\\copy p to stdout csv\n"
    )
    done = run_psql(served.url, "-q", given=script)
    assert done.stderr == ""
    assert done.stdout.splitlines()[:2] == ["1|a", "2|b"]
    assert sorted(done.stdout.splitlines()[2:]) == ["1,a", "2,b"]


def test_psql_shows_errors_with_their_state(served):
    done = run_psql(served.url, "-v", "VERBOSITY=sqlstate", "-c", "select * from nothing")
    assert done.stderr.strip() == "ERROR:  42P01"
    assert done.returncode == 1


def test_asyncpg_prepares_with_types_that_the_server_infers(served):
    async def talk() -> None:
        connection = await asyncpg.connect(served.url)
        try:
            await connection.execute("create table a (id bigint primary key, name text, at timestamptz, tags text[])")
            await connection.executemany("insert into a (id, name, tags) values ($1, $2, $3)", [(1, "x", ["t"])] * 1)
            row = await connection.fetchrow("select * from a where id = $1", 1)
            assert dict(row) == {"id": 1, "name": "x", "at": None, "tags": ["t"]}
            assert await connection.fetchval("update a set name = $1 where id = $2 returning name", "y", 1) == "y"
            assert await connection.fetchval("select $1::int + 1", 41) == 42
            async with connection.transaction():
                found = [
                    r["x"] async for r in connection.cursor("select x from generate_series(1, 10) s(x)", prefetch=3)
                ]
            assert found == list(range(1, 11))
            async with connection.transaction():
                cursor = await connection.cursor("select x from generate_series(1, 10) s(x)")
                await cursor.forward(4)
                assert (await cursor.fetchrow())["x"] == 5
            with pytest.raises(asyncpg.UniqueViolationError):
                await connection.execute("insert into a (id) values (1)")
        finally:
            await connection.close()

    asyncio.run(talk())


KEYED = "create table keyed (i int, b bigint primary key, t text, u uuid, d date, n numeric(6,2), v interval, l text[])"
FIRST = "insert into keyed values (1, 1, 'a', $1, '2024-01-01', 1.5, '1 mon 2 days', '{x,y}')"
KEY = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
# A condition that the row 1 meets and the row 2 does not, and the value of its parameter.
CONDITIONS = [
    ("i = any($1)", [1, None]),
    ("b = any($1)", [1, 7]),
    ("b = any($1::int[])", [1, 7]),
    ("b <> all($1)", [2, 7]),
    ("t = any($1)", ["a"]),
    ("t like any($1)", ["%a"]),
    ("u = any($1)", [KEY]),
    ("d = any($1)", [dt.date(2024, 1, 1)]),
    ("n = any($1)", [Decimal("1.50")]),
    ("l = $1", ["x", "y"]),
    ("l @> $1", ["y"]),
    ("l && $1", ["y", "z"]),
    ("b = any(array[$1, 7])", 1),
    ("$1 = any(l)", "x"),
    ("l = '{x,y}' and b = $1", 1),
]


@pytest.fixture(scope="module")
def keyed(served):
    async def fill() -> None:
        connection = await asyncpg.connect(served.url)
        await connection.execute(KEYED)
        await connection.execute(FIRST, KEY)
        await connection.execute("insert into keyed (i, b, t) values (2, 2, 'b')")
        await connection.close()

    asyncio.run(fill())
    return served.url


def test_asyncpg_gives_arrays_as_parameters(keyed):
    async def talk() -> None:
        connection = await asyncpg.connect(keyed)
        try:
            spans = [dt.timedelta(days=32)]
            assert await connection.fetch("select b from keyed where v = any($1)", spans) == [(1,)]
            for condition, value in CONDITIONS:
                assert await connection.fetch(f"select b from keyed where {condition}", value) == [(1,)], condition
        finally:
            await connection.close()

    asyncio.run(talk())


@pytest.mark.parametrize("factory", [psycopg.Cursor, psycopg.RawCursor])
@pytest.mark.parametrize(("condition", "value"), CONDITIONS)
def test_psycopg_gives_arrays_as_parameters(keyed, factory, condition, value):
    text = condition if factory is psycopg.RawCursor else condition.replace("$1", "%s")
    with psycopg.connect(keyed, cursor_factory=factory) as connection:
        assert connection.execute(f"select b from keyed where {text}", (value,)).fetchall() == [(1,)]


def test_asyncpg_detects_changed_columns_of_a_prepared_statement(served):
    async def talk() -> None:
        connection = await asyncpg.connect(served.url)
        try:
            await connection.execute("create table changing (id int primary key)")
            statement = await connection.prepare("select * from changing")
            assert await statement.fetch() == []
            await connection.execute("alter table changing add column word text")
            with pytest.raises(asyncpg.InvalidCachedStatementError):
                await statement.fetch()
            assert await connection.fetch("select * from changing") == []
        finally:
            await connection.close()

    asyncio.run(talk())


def test_serve_runs_until_it_is_signalled(tmp_path):
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "SEACHANGE_PASSWORD": "secret"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        (port,) = re.findall(r"is ready on 127\.0\.0\.1:(\d+)", process.stdout.readline())
        done = run_psql(f"postgresql://seachange:secret@127.0.0.1:{port}/seachange", "-c", "select 40 + 2")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        events = [line.split()[2:4] for line in process.stderr.read().splitlines()]
    assert [words[0] for words in events] == ["node", "login", "logout", "node"]
    assert done.stdout == "42\n"


def test_psql_lists_functions_and_what_a_session_has_prepared(served):
    listed = run_psql(served.url, "-c", r"\df pg_catalog.lower").stdout.splitlines()
    assert listed == ["pg_catalog|lower|text|text|func"]
    script = (
        "prepare p (int, text) as select $1, $2; select name, parameter_types, from_sql from pg_prepared_statements"
    )
    assert run_psql(served.url, "-c", script).stdout.splitlines() == ["PREPARE", "p|{integer,text}|t"]


def test_columns_of_a_result_say_where_they_come_from(served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table origin (id int primary key, at timestamptz default now(), word text)")
        ((number,),) = connection.execute("select 'origin'::regclass::oid::int")
        for query, expected in {
            "select word as w, id + 1, id from origin where id = 1": [3, 0, 1],
            "select * from origin": [1, 2, 3],
            "select b.word, a.* from origin a join origin b on a.id = b.id order by 1": [3, 1, 2, 3],
            "insert into origin values (1) returning id, upper(word)": [1, 0],
            "select count(*) from origin": [0],
        }.items():
            found = connection.execute(query).pgresult
            assert found is not None
            origins = [(found.ftable(i), found.ftablecol(i)) for i in range(found.nfields)]
            assert origins == [(number if place else 0, place) for place in expected]


def test_now_is_called_now(served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute(
            "create table moments (id int primary key, a timestamptz default now(), b date default current_date)"
        )
        connection.execute("alter table moments add column c timestamptz default current_timestamp")
        connection.execute("insert into moments (id) values (1)")
        assert connection.execute("select a = c, a is not null from moments").fetchone() == (True, True)
        shown = connection.execute(
            "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'moments'::regclass order by adnum"
        )
        assert shown.fetchall() == [("now()",), ("CURRENT_DATE",), ("CURRENT_TIMESTAMP",)]
        described = connection.execute("select now(), current_timestamp, now() - now()").description
        assert [column.name for column in described or ()] == ["now", "current_timestamp", "?column?"]


def test_conditions_are_shown_as_they_were_written(served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table shown (id int primary key, price int, check (price is not null or id > 0))")
        connection.execute("create index shown_price on shown (price desc) where price is not null")
        text = "pg_get_indexdef('shown_price'::regclass{}) like '%{}'"
        for options, end in (("", "(price DESC) WHERE (price IS NOT NULL)"), (", 0, true", "WHERE price IS NOT NULL")):
            assert connection.execute("select " + text.format(options, end)).fetchone() == (True,)


def test_trust_requires_a_loopback_address(tmp_path):
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(tmp_path), "--trust", "--listen"]
    done = subprocess.run([*command, "0.0.0.0:0"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
