"""docs/schema-changes.md shows what the tool prints; `make golden` brings it up to date."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from seachange.model.statements.session_statements import DdlExplanation
from seachange.planner.explain.picture import draw, mermaid
from tests.planner.explain.costs import CASES, cost_of, cost_table
from tests.planner.explain.plans import CHANGE, FOO, explain, world

PAGE = Path(__file__).parents[3] / "docs" / "schema-changes.md"
_BLOCK = re.compile(r"(<!-- printed: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fenced(lines: list[str], language: str = "") -> list[str]:
    return [f"```{language}", *lines, "```"]


def shown(form: DdlExplanation) -> list[str]:
    return fenced(explain(world(FOO, foo=1_000_000), CHANGE, form))


def picture() -> list[str]:
    made = world(FOO, foo=1_000_000)
    return fenced(mermaid(draw(made.plan(CHANGE), made.catalog)), "mermaid")


PRINTED: dict[str, Callable[[], list[str]]] = {
    "stages": lambda: shown(DdlExplanation.STAGES),
    "shape": lambda: shown(DdlExplanation.COST),
    "picture": picture,
    "costs": cost_table,
}


def printed(page: str) -> str:
    def fill(block: re.Match[str]) -> str:
        return block[1] + "\n".join(PRINTED[block["name"]]()) + "\n" + block[3]

    return _BLOCK.sub(fill, page)


@pytest.mark.golden
def test_the_page_shows_what_is_printed(rewrite: bool):
    page = PAGE.read_text(encoding="utf-8")
    assert {block["name"] for block in _BLOCK.finditer(page)} == set(PRINTED)
    if rewrite:
        PAGE.write_text(printed(page), encoding="utf-8")
    else:
        assert printed(page) == page


def test_a_stale_page_is_noticed():
    page = "<!-- printed: costs -->\nold\n<!-- end -->"
    assert printed(page) != page


def test_every_sentence_is_about_one_statement():
    assert len({case.sql for case in CASES}) == len(CASES)
    assert all(case.why.endswith(".") for case in CASES)


def test_a_unique_column_needs_a_quarter_of_what_it_needs_elsewhere():
    # CockroachDB's golden plan of this statement has 12 transactions that change descriptors.
    assert cost_of("alter table foo add column a int unique default 7").versions == 3
