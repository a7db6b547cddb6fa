"""Parsing and planning ask whether the statement that they work for is to end."""

import pytest

from seachange import errors
from seachange.runtime.interruption import InterruptedBy
from seachange.sql.compile.template import compile_template
from seachange.sql.parsing.parse import TreeStatement
from seachange.sql.run.execute import prepare

TEXT = "select 1 in ({}) -- {}"


def end() -> None:
    raise errors.QueryCanceled(reason="user request")


def test_parsing_can_be_interrupted():
    text = TEXT.format("1, 2", "parsed")
    with InterruptedBy(end), pytest.raises(errors.QueryCanceled):
        prepare(text)
    # What was interrupted is not kept.
    assert len(prepare(text)) == 1


def test_planning_can_be_interrupted_between_passes_and_within_a_long_one():
    (prepared,) = prepare(TEXT.format(", ".join(f"({number})" for number in range(2_000)), "planned"))
    assert isinstance(prepared.parsed, TreeStatement)
    asked: list[int] = []
    with InterruptedBy(lambda: asked.append(1)):
        compile_template(prepared.parsed.tree.copy())
    assert len(asked) > 40
    with InterruptedBy(end), pytest.raises(errors.QueryCanceled):
        compile_template(prepared.parsed.tree.copy())
