"""pg_dump and pg_restore: a database comes back as it was."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from compat.clients.psql import SCHEMA, psql
from compat.features import Features, expect

feature = Features()
FOLDER = Path(os.environ["PG_DUMP"]).parent
SECONDS_MAX = 120
ROWS = """
insert into author (name, mood) values ('Ann', 'happy'), ('Ben', null);
insert into book (isbn, author_id, title, price, tags) values
    ('9780000000001', 1, 'A', 9.5, '{a,"b c"}'), ('2', 2, E'x\\ty', null, null);
select nextval('numbers');
"""


def run(program: str, *arguments: str) -> str:
    command = [str(FOLDER / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise AssertionError(done.stderr.strip())
    return done.stdout


def dump(url: str, *options: str) -> str:
    """Without comments, and the key that a session makes up. Rows have no order."""
    found = re.sub(r"(?m)^(--.*|\\(un)?restrict .*|)\n", "", run("pg_dump", *options, url))
    return re.sub(
        r"(?s)(?<= FROM stdin;\n).*?(?=\\\.\n)", lambda rows: "".join(sorted(rows[0].splitlines(True))), found
    )


@cache
def fill(url: str) -> str:
    """The dump of the database, as it is at first."""
    # Roles are those of all databases of a server.
    psql(url, "-c", SCHEMA.replace("reader", "dumper"), "-c", ROWS)
    return dump(url)


def copied(url: str, name: str, restore: Callable[[str], object]) -> str:
    """The dump of a new database, once it is restored."""
    psql(url, "-c", f"create database {name}")
    copy = re.sub(r"/\w+(\?|$)", rf"/{name}\1", url)
    restore(copy)
    return dump(copy)


@feature("plain, psql -1 -f")
def plain(url: str) -> None:
    wanted = fill(url)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.sql"
        path.write_text(run("pg_dump", url))
        expect(copied(url, "plain", lambda copy: psql(copy, "-1", "-f", str(path))), wanted)


@feature("custom, pg_restore -1")
def custom(url: str) -> None:
    _archived(url, "custom", "-1")


@feature("directory, pg_restore -j 2")
def directory(url: str) -> None:
    _archived(url, "directory", "-j", "2")


def _archived(url: str, form: str, *options: str) -> None:
    wanted = fill(url)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "archive")
        run("pg_dump", f"--format={form}", "-f", path, url)
        expect(copied(url, form, lambda copy: run("pg_restore", *options, "-d", copy, path)), wanted)


@feature("--schema-only, --data-only, -t")
def parts(url: str) -> None:
    fill(url)
    expect("COPY " in dump(url, "--schema-only"), False)
    expect("CREATE " in dump(url, "--data-only"), False)
    expect(re.findall(r"COPY (\S+)", dump(url, "-t", "author")), ["public.author"])


@feature("--inserts, --clean --if-exists --create")
def options(url: str) -> None:
    wanted = fill(url)
    script = run("pg_dump", "--inserts", url)
    expect(copied(url, "inserts", lambda copy: psql(copy, given=script)), wanted)
    expect("DROP TABLE IF EXISTS" in dump(url, "--clean", "--if-exists"), True)
    expect("CREATE DATABASE" in dump(url, "--create"), True)


if __name__ == "__main__":
    feature.run()
