"""Every statement by a role that lacks each right that it needs, and by one that has them all: as in PostgreSQL."""

from collections.abc import Callable, Iterator
from typing import get_args

import pytest

from seachange.model.statements.required_privileges import ACTIONS, STATEMENTS, rows
from seachange.model.statements.table_statements import AlterAction, Statement
from tests.differential.both import Both, open_both
from tests.differential.privilege_cases import CASES, DIFFERENCES, NOT_COMPARED, SETUP, Case
from tests.support.postgres import LocalPostgres

Ask = Callable[[str], str | None]


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with open_both(postgres_server, tmp_path_factory.mktemp("privileges")) as both:
        both.run(SETUP)
        try:
            yield both
        finally:
            both.postgres.execute("drop schema s, target, kinds cascade; drop role ann, bob, crew")


def outcome(ask: Ask, case: Case, missing: str | None) -> str | None:
    """The code of the statement's error, in a block that is rolled back."""
    assert ask("begin") is None
    try:
        for text in (case.before, *(text for need, text in case.rights.items() if need != missing)):
            assert not text or ask(text) is None, text
        assert ask("set session authorization ann") is None
        return ask(case.statement)
    finally:
        assert ask("rollback") is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.statement)
def test_each_right_is_required_as_in_postgresql(both, case):
    for missing in (None, *case.rights):
        theirs = outcome(lambda text: both.ask_postgres(text).sqlstate, case, missing)
        ours = outcome(lambda text: both.ask_ours(text).sqlstate, case, missing)
        expected = DIFFERENCES.get((case.statement, missing))
        if expected is not None and (theirs, ours) == expected[:2]:
            continue
        assert (theirs, ours) == ((None, None) if missing is None else ("42501", "42501")), missing


def test_every_statement_has_a_row():
    assert {*STATEMENTS} == {*get_args(Statement)}
    assert {*ACTIONS} == {*get_args(AlterAction)}


@pytest.mark.parametrize("row", rows())
def test_every_need_is_compared(row):
    needs = {str(need) for need in rows()[row]}
    compared = {need for case in CASES if case.row == row for need in case.rights}
    if (row, None) in NOT_COMPARED:
        assert not compared
    else:
        assert needs == compared | {need for name, need in NOT_COMPARED if name == row and need is not None}


def test_no_list_has_what_is_not_there():
    assert {case.row for case in CASES} | {row for row, _ in NOT_COMPARED} <= {*rows()}
    assert {statement for statement, _ in DIFFERENCES} <= {case.statement for case in CASES}
