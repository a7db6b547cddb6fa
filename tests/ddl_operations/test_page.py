"""docs/ddl.md says what the planner says; `make golden` brings it up to date."""

import pytest

from tests.ddl_operations.operations import OPERATIONS, Operation
from tests.ddl_operations.page import catalogue
from tests.docs.pages import ROOT
from tests.schemachange.cases import CASES

PAGE = ROOT / "docs" / "ddl.md"
MARK = "<!-- generated from tests/ddl_operations and the planner -->\n"


@pytest.mark.golden
def test_the_page_shows_what_the_planner_says(rewrite: bool):
    head, mark, rest = PAGE.read_text().partition(MARK)
    assert mark
    wanted = "\n".join(catalogue()) + "\n"
    if rewrite:
        PAGE.write_text(head + mark + wanted)
    else:
        assert rest == wanted


def test_every_statement_is_listed_once():
    listed = [sql for operation in OPERATIONS for sql in operation.statements]
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_bench_has_a_case_for_every_operation_on_a_table(operation: Operation):
    for words in operation.bench:
        assert any(case.name.startswith(words) for case in CASES), words
