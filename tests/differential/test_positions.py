"""Errors have the position that they have in PostgreSQL: the character of the statement from which the message speaks.

What differs is listed in testdata/position_differences.txt with a reason.
"""

from collections.abc import Iterator

import psycopg
import pytest

from seachange.errors import Error
from tests.differential.both import Both, open_both
from tests.differential.test_expressions import FOLDER
from tests.support.postgres import LocalPostgres

STATEMENTS = [line for line in (FOLDER / "positions.txt").read_text().splitlines() if line and not line.startswith("#")]
DIFFERENT = frozenset((FOLDER / "position_differences.txt").read_text().splitlines())
Found = tuple[str | None, int | None]


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with open_both(postgres_server, tmp_path_factory.mktemp("data")) as opened:
        opened.run((FOLDER / "typed.sql").read_text())
        yield opened


def ask_postgres(both: Both, statement: str) -> Found:
    try:
        both.postgres.execute(statement.encode())
    except psycopg.Error as error:
        position = error.diag.statement_position
        return error.sqlstate, int(position) if position is not None else None
    return None, None


def ask_ours(both: Both, statement: str) -> Found:
    try:
        both.ours.cursor().execute(statement)
    except Error as error:
        return error.sqlstate, error.position
    return None, None


def show(statement: str, expected: Found, actual: Found) -> str:
    marks = [
        f"    {' ' * ((position or 1) - 1)}^ {code} {who}"
        for who, (code, position) in (("PostgreSQL", expected), ("ours", actual))
        if position is not None
    ]
    return "\n".join([f"    {statement}", *marks, f"    PostgreSQL {expected}, ours {actual}"])


def test_positions_are_the_same(both: Both) -> None:
    found = {statement: (ask_postgres(both, statement), ask_ours(both, statement)) for statement in STATEMENTS}
    different = {each: show(each, *pair) for each, pair in found.items() if pair[0] != pair[1]}
    print(f"positions: {len(STATEMENTS)} statements compared, {len(different)} differ")
    unlisted = [how for each, how in different.items() if each not in DIFFERENT]
    assert not unlisted, "\n" + "\n".join(unlisted)
    listed = {line for line in DIFFERENT if line and not line.startswith("#")}
    assert not listed - set(different), f"these no longer differ: {listed - set(different)}"
