"""docs/errors.md lists every error that a client can see; `make golden` updates it."""

import inspect

import pytest

from seachange import errors
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "errors.md"
MARK = "<!-- generated from src/seachange/errors -->\n"


def concrete() -> list[type[errors.Error]]:
    """The errors that are raised: not the families of PEP 249."""
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.Error)]
    families = {errors.Error, *(base for kind in found for base in kind.__bases__)}
    return sorted((kind for kind in found if kind not in families), key=lambda kind: (kind.sqlstate, kind.__name__))


def in_cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def table() -> str:
    lines = ["| SQLSTATE | error | message | hint |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {kind.sqlstate} | {kind.__name__} | {in_cell(kind.message)} | {in_cell(kind.hint_text)} |"
        for kind in concrete()
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.golden
def test_the_page_lists_them_all(rewrite: bool):
    head, mark, rest = PAGE.read_text().partition(MARK)
    assert mark
    if rewrite:
        PAGE.write_text(head + mark + table())
    else:
        assert rest == table()


def test_every_code_has_five_characters():
    assert [kind for kind in concrete() if len(kind.sqlstate) != 5 or not kind.sqlstate.isalnum()] == []
