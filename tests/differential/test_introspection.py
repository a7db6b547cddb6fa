"""What clients ask of the catalogs, answered as PostgreSQL does.

The statements were taken from PostgreSQL's log while psql (its backslash commands), SQLAlchemy, Alembic, Django,
pgjdbc (DatabaseMetaData), pgcli and asyncpg looked at the schema in testdata/shop.sql. `{class:authors}` stands for the
number that an object has.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.differential.both import Answer, Both, comparable, open_both
from tests.support.postgres import LocalPostgres

FOLDER = Path(__file__).parent / "testdata"
CLIENTS = sorted(path.stem for path in (FOLDER / "introspection").iterdir())
_NUMBER = re.compile(r"\{(class|type|namespace|constraint):([^}]*)\}")
_LOOK_UPS = {
    "class": "SELECT oid FROM pg_class WHERE relname = '{}'",
    "type": "SELECT oid FROM pg_type WHERE typname = '{}'",
    "namespace": "SELECT oid FROM pg_namespace WHERE nspname = '{}'",
    "constraint": "SELECT oid FROM pg_constraint WHERE conname = '{}'",
}
# What PostgreSQL has from the start, and we have not: rows about it are left out on both sides.
_BUILT_IN = ("'pg_catalog'", "'information_schema'", "'pg_toast'", "'template0'", "'template1'", "'postgres'")
# Of other tests on the same server.
_STRANGE = re.compile(r"'database_\d+'")

# Statements whose answers differ, and why.
_SIZES = "sizes are those of our files"
_TYPES = "types of PostgreSQL that are not here"
DIFFERENT: dict[str, str] = {
    "asyncpg 1": "there is no JIT to be switched off",
    "django 6": "there are no system columns",
    "jdbc 18": _TYPES,
    "jdbc 19": _TYPES,
    "psql 2": _SIZES,
    "psql 7": _SIZES,
    "psql 12": _SIZES,
    "psql 70": "the first role owns all that there is",
    "psql 74": "casts are not listed",
    "sqlalchemy 1": "another version",
    "sqlalchemy 17": "only default operator classes are listed",
}


def read_statements(client: str) -> Iterator[tuple[str, str]]:
    text = (FOLDER / "introspection" / f"{client}.txt").read_text()
    for part in text.split("---- ")[1:]:
        name, _, statement = part.partition("\n")
        yield name, statement


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with open_both(postgres_server, tmp_path_factory.mktemp("data")) as opened:
        opened.run((FOLDER / "shop.sql").read_text())
        yield opened


def differences(both: Both, client: str) -> tuple[int, list[str], dict[str, str]]:
    """How many statements were compared, the names of those whose answers differ, and how."""
    count, found, how = 0, [], {}
    for name, statement in read_statements(client):
        wanted = both.ask_postgres(_numbered(statement, both.ask_postgres))
        if wanted.rows is None:
            continue
        count += 1
        given = both.ask_ours(_numbered(statement, both.ask_ours))
        expected, actual = _without_built_in(comparable(wanted)), _without_built_in(comparable(given))
        if expected != actual:
            found.append(name)
            how[name] = f"{statement[:200]}\n  PostgreSQL {_only(expected, actual)}\n  ours {_only(actual, expected)}"
    return count, found, how


def _numbered(statement: str, ask: Callable[[str], Answer]) -> str:
    def number(match: re.Match[str]) -> str:
        rows = ask(_LOOK_UPS[match.group(1)].format(match.group(2).rpartition(".")[2])).rows
        return str(rows[0][0]) if rows else "0"

    return _NUMBER.sub(number, statement)


def _without_built_in(rows: list[str] | str) -> list[str] | str:
    if isinstance(rows, str):
        return rows
    return [row for row in rows if not any(name in row for name in _BUILT_IN) and not _STRANGE.search(row)]


def _only(these: list[str] | str, those: list[str] | str) -> str:
    if isinstance(these, str) or isinstance(those, str):
        return str(these)[:300]
    return "; ".join(row for row in these if row not in those)[:300]


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_see_the_same_schema(both: Both, client: str) -> None:
    count, found, how = differences(both, client)
    unlisted = [how[name] for name in found if name not in DIFFERENT]
    print(f"{client}: {count} statements compared, {len(found)} differ")
    assert not unlisted, "\n".join(unlisted)
    gone = [name for name in DIFFERENT if name.split()[0] == client and name not in found]
    assert not gone, f"these no longer differ: {gone}"
    assert count > 0
