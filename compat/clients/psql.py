"""psql: its catalog commands, scripts, COPY, variables, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from compat.features import Features, expect

feature = Features()
PSQL = os.environ.get("PSQL", "psql")
SECONDS_MAX = 120
SCRIPT_STATEMENTS = 4_000

SCHEMA = """
create schema lib;
create type mood as enum ('sad', 'ok', 'happy');
create sequence numbers start 10 increment 5;
create table author (id serial primary key, name varchar(80) not null, mood mood default 'ok');
create table book (
    isbn char(13) primary key,
    author_id int not null references author (id) on delete cascade,
    title text not null,
    price numeric(8, 2) check (price > 0),
    printed timestamptz default now(),
    tags text[],
    unique (author_id, title)
);
create index book_price on book (price desc) where price is not null;
create view cheap as select isbn, title from book where price < 10;
comment on table book is 'what is sold';
create role reader;
grant select on book to reader;
"""


def psql(url: str, *arguments: str, given: str = "", plain: bool = True) -> str:
    """The output of psql, which stops at the first error."""
    form = ["-A", "-t"] if plain else []
    command = [PSQL, "-X", "-q", "-v", "ON_ERROR_STOP=1", *form, *arguments, url]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise AssertionError(done.stderr.strip())
    return done.stdout


def expect_lines(found: str, *wanted: str) -> None:
    lines = [line.strip() for line in found.splitlines()]
    missing = [line for line in wanted if line not in lines]
    if missing:
        raise AssertionError(f"no {missing[0]!r} in {found!r}")


@feature("-f with a schema")
def script_of_schema(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.sql"
        path.write_text(SCHEMA)
        psql(url, "-1", "-f", str(path))
    expect(psql(url, "-c", "select count(*) from pg_class where relname in ('book', 'author', 'cheap')"), "3\n")


@feature(r"\d")
def relations(url: str) -> None:
    expect_lines(
        psql(url, "-c", r"\d"),
        "public|author|table|seachange",
        "public|author_id_seq|sequence|seachange",
        "public|book|table|seachange",
        "public|cheap|view|seachange",
        "public|numbers|sequence|seachange",
    )


@feature(r"\d table")
def table(url: str) -> None:
    found = psql(url, "-c", r"\d book", plain=False)
    columns = [re.sub(r"\s*\|\s*", "|", line.strip()) for line in found.splitlines() if "|" in line]
    expect(
        columns,
        [
            "Column|Type|Collation|Nullable|Default",
            "isbn|character(13)||not null|",
            "author_id|integer||not null|",
            "title|text||not null|",
            "price|numeric(8,2)|||",
            "printed|timestamp with time zone|||now()",
            "tags|text[]|||",
        ],
    )
    expect_lines(
        found,
        '"book_pkey" PRIMARY KEY, btree (isbn)',
        '"book_author_id_title_key" UNIQUE CONSTRAINT, btree (author_id, title)',
        '"book_price" btree (price DESC) WHERE price IS NOT NULL',
        '"book_price_check" CHECK (price > 0::numeric)',
        '"book_author_id_fkey" FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE',
    )
    expect_lines(
        psql(url, "-c", r"\d author", plain=False),
        'TABLE "book" CONSTRAINT "book_author_id_fkey" FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE',
    )


@feature(r"\d+ table")
def table_in_detail(url: str) -> None:
    found = psql(url, "-c", r"\d+ book", plain=False)
    expect_lines(found, '"book_pkey" PRIMARY KEY, btree (isbn)', "Access method: heap")
    if "extended" not in found:
        raise AssertionError("no storage of columns")


@feature(r"\d index, view, sequence")
def others(url: str) -> None:
    expect_lines(psql(url, "-c", r"\d book_pkey", plain=False), 'primary key, btree, for table "public.book"')
    expect_lines(psql(url, "-c", r"\d cheap"), "isbn|character(13)|||", "title|text|||")
    expect_lines(psql(url, "-c", r"\d numbers"), "bigint|10|1|9223372036854775807|5|no|1")


@feature(r"\d+ view, \sv")
def view_text(url: str) -> None:
    for command in (r"\d+ cheap", r"\sv cheap"):
        found = " ".join(psql(url, "-c", command, plain=False).split())
        if not re.search("SELECT isbn, title FROM book WHERE price < 10", found, re.I):
            raise AssertionError(found)


@feature(r"\dt \di \ds \dv \dm")
def kinds(url: str) -> None:
    expect_lines(psql(url, "-c", r"\dt"), "public|author|table|seachange", "public|book|table|seachange")
    expect(psql(url, "-c", r"\dt+ book").startswith("public|book|table|seachange|permanent|heap|"), True)
    expect_lines(
        psql(url, "-c", r"\di"), "public|book_pkey|index|seachange|book", "public|book_price|index|seachange|book"
    )
    expect_lines(psql(url, "-c", r"\ds"), "public|numbers|sequence|seachange")
    expect_lines(psql(url, "-c", r"\dv"), "public|cheap|view|seachange")
    psql(url, "-c", r"\dm")


@feature(r"\d with a pattern")
def patterns(url: str) -> None:
    expect(psql(url, "-c", r"\dt b*k").split(), ["public|book|table|seachange"])
    expect(psql(url, "-c", r"\dt public.(author|boot)").split(), ["public|author|table|seachange"])


@feature(r"\dT \dT+")
def types(url: str) -> None:
    expect_lines(psql(url, "-c", r"\dT"), "public|mood|")
    if "happy" not in psql(url, "-c", r"\dT+ mood"):
        raise AssertionError("no labels")


@feature(r"\l")
def databases(url: str) -> None:
    if not any(line.startswith("seachange|seachange|UTF8|") for line in psql(url, "-c", r"\l").splitlines()):
        raise AssertionError("no line of the database")


@feature(r"\dn")
def schemas(url: str) -> None:
    expect_lines(psql(url, "-c", r"\dn"), "lib|seachange")
    psql(url, "-c", r"\dn+")


@feature(r"\du \dg \drg")
def roles(url: str) -> None:
    expect_lines(psql(url, "-c", r"\du"), "reader|Cannot login")
    for command in (r"\du+", r"\dg", r"\drg"):
        psql(url, "-c", command)


@feature(r"\df")
def functions(url: str) -> None:
    psql(url, "-c", r"\df")


@feature(r"\df of built-in functions")
def builtin_functions(url: str) -> None:
    if "lower" not in psql(url, "-c", r"\df pg_catalog.lower"):
        raise AssertionError("no function lower")


@feature(r"\dp \z")
def privileges(url: str) -> None:
    for command in (r"\dp book", r"\z book"):
        if "reader=r/seachange" not in psql(url, "-c", command):
            raise AssertionError(f"no privilege in {command}")


@feature(r"\dd and what else begins so")
def rest_of_family(url: str) -> None:
    for letters in [
        "dd",
        "db",
        "dc",
        "dC",
        "dD",
        "dx",
        "dy",
        "dRp",
        "dRs",
        "des",
        "dew",
        "det",
        "dF",
        "dFd",
        "dL",
        "do",
        "dO",
        "dA",
        "dAc",
        "ddp",
        "dconfig",
        "dX",
    ]:
        psql(url, "-c", f"\\{letters}")


@feature(r"\conninfo \encoding \echo :SERVER_VERSION_NUM")
def connection_info(url: str) -> None:
    if "seachange" not in psql(url, "-c", r"\conninfo"):
        raise AssertionError("no user in \\conninfo")
    expect(psql(url, "-c", r"\encoding"), "UTF8\n")


@feature(r"\copy")
def copy(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "authors.csv"
        path.write_text('id,name,mood\n1,"Woolf, V.",happy\n2,Kafka,sad\n')
        psql(url, "-c", rf"\copy author from '{path}' csv header")
        psql(url, "-c", rf"\copy (select * from author order by id) to '{path}.out' csv header")
        expect(Path(f"{path}.out").read_text(), path.read_text())
    psql(url, given="\\copy author (id, name) from stdin\n3\tEco\\tU.\n\\.\n")
    expect(psql(url, "-c", "select name from author where id = 3"), "Eco\tU.\n")


@feature(r"\timing")
def timing(url: str) -> None:
    found = psql(url, given="\\timing on\nselect 1;\n")
    if not re.search(r"^1$", found, re.M) or not re.search(r"^Time: [\d.]+ ms", found, re.M):
        raise AssertionError(found)


@feature(r"variables, \gset, \gexec, \bind, \gdesc")
def variables(url: str) -> None:
    script = (
        "\\set word 'it''s'\n"
        "select :'word' as w, 6 * 7 as answer \\gset\n"
        "\\echo :w :answer\n"
        "select 'select ' || x from generate_series(1, 2) as s(x) order by 1 \\gexec\n"
        "select $1::int + 1 \\bind 41 \\g\n"
        "select 1 as a, 'x'::text as b \\gdesc\n"
    )
    expect(psql(url, given=script).split("\n")[:-1], ["it's 42", "1", "2", "42", "a|integer", "b|text"])


@feature("FETCH_COUNT")
def fetched_in_parts(url: str) -> None:
    script = "\\set FETCH_COUNT 100\nselect x from generate_series(1, 1000) as s(x);\n"
    expect(psql(url, given=script).split(), [str(number) for number in range(1, 1001)])


@feature("ON_ERROR_ROLLBACK, VERBOSITY")
def errors(url: str) -> None:
    script = (
        "\\set ON_ERROR_ROLLBACK on\n\\set ON_ERROR_STOP off\nbegin;\n"
        "insert into author values (9, 'x');\nselect 1 / 0;\ncommit;\n"
    )
    psql(url, given=script)
    expect(psql(url, "-c", "select name from author where id = 9"), "x\n")


@feature("Ctrl-C")
def interrupt(url: str) -> None:
    process, terminal = pty.fork()
    if process == 0:
        # On a terminal psql shows what it has by a pager, which waits for a key.
        os.execv(PSQL, [PSQL, "-X", "-A", "-t", "-n", "-P", "pager=off", url])
    try:
        # A Ctrl-C takes what was typed and is not read yet with it.
        await_text(terminal, "=")
        os.write(terminal, b"select pg_sleep(100);\n")
        # Again until it is heard: the first may come before the statement is under way.
        await_text(terminal, "canceling statement due to user request", again=b"\x03")
        os.write(terminal, b"select 'still' || ' here';\n\\q\n")
        await_text(terminal, "still here")
    finally:
        os.close(terminal)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def await_text(terminal: int, wanted: str, again: bytes = b"") -> None:
    """Reads until the text appears, and sends the input again after each silence."""
    found, deadline = "", time.monotonic() + SECONDS_MAX / 4
    while wanted not in found:
        if time.monotonic() > deadline:
            raise AssertionError(f"no {wanted!r} in {found!r}")
        if select.select([terminal], [], [], 0.5)[0]:
            found += os.read(terminal, 1 << 16).decode()
        elif again:
            os.write(terminal, again)


@feature("-f of a large script")
def large_script(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.sql"
        lines = ["create table large (id int primary key, note text);"]
        lines += [f"insert into large values ({n}, 'note ''{n}'' ; -- no comment');" for n in range(SCRIPT_STATEMENTS)]
        path.write_text("\n".join(lines))
        psql(url, "-1", "-f", str(path))
    expect(psql(url, "-c", "select count(*), min(note) from large"), f"{SCRIPT_STATEMENTS}|note '0' ; -- no comment\n")


@feature("create index concurrently")
def job(url: str) -> None:
    psql(url, "-c", "create index concurrently book_title on book (title)")
    expect(psql(url, "-c", "select indisvalid from pg_index where indexrelid = 'book_title'::regclass"), "t\n")


if __name__ == "__main__":
    feature.run()
