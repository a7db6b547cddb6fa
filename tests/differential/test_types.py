"""Statements whose meaning depends on the types of their parts, in one order on both, with the same rows, names and
types of result columns, and codes of errors: operators, comparisons and constants by type, and what type errors refuse.

Each line of testdata/typed.txt is one, and of programs.txt, which has those that programs depend on. What differs is
listed in a file beside each, with a reason.
"""

from pathlib import Path

import pytest

from tests.differential.both import Answer, open_both, values
from tests.differential.test_expressions import FOLDER, ask_both, differences, read_lines
from tests.support.postgres import LocalPostgres


def answer_with_columns(answer: Answer) -> object:
    return values(answer), answer.columns


@pytest.mark.parametrize("name", ["typed", "programs"])
def test_types_decide_the_same(postgres_server: LocalPostgres, tmp_path: Path, name: str) -> None:
    statements, different = read_lines(f"{name}.txt"), set(read_lines(f"{name}_differences.txt"))
    found: dict[str, str] = {}
    with open_both(postgres_server, tmp_path) as both:
        if name == "typed":
            both.run((FOLDER / "typed.sql").read_text())
        # One by one: a statement may stand there twice.
        for statement in statements:
            found |= differences(ask_both(both, [statement]), answer_with_columns)
    print(f"{name}: {len(statements)} statements compared, {len(found)} differ")
    unlisted = [how for statement, how in found.items() if statement not in different]
    assert not unlisted, "\n".join(unlisted)
    assert not different - set(found), f"these no longer differ: {different - set(found)}"
