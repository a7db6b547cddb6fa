"""Statements whose meaning depends on the types of their parts, in one order on both, with the same rows, names and
types of result columns, and codes of errors: operators, comparisons and constants by type, and what type errors refuse.

What differs is listed in testdata/typed_differences.txt with a reason.
"""

from pathlib import Path

from tests.differential.both import Answer, open_both, values
from tests.differential.test_expressions import FOLDER, ask_both, differences, read_lines
from tests.support.postgres import LocalPostgres

STATEMENTS = read_lines("typed.txt")
DIFFERENT = set(read_lines("typed_differences.txt"))


def answer_with_columns(answer: Answer) -> object:
    return values(answer), answer.columns


def test_types_decide_the_same(postgres_server: LocalPostgres, tmp_path: Path) -> None:
    with open_both(postgres_server, tmp_path) as both:
        both.run((FOLDER / "typed.sql").read_text())
        found = differences(ask_both(both, STATEMENTS), answer_with_columns)
    print(f"types: {len(STATEMENTS)} statements compared, {len(found)} differ")
    unlisted = [how for statement, how in found.items() if statement not in DIFFERENT]
    assert not unlisted, "\n".join(unlisted)
    assert not DIFFERENT - set(found), f"these no longer differ: {DIFFERENT - set(found)}"
