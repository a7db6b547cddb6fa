"""A text that opens something and does not close it is refused where it opens, in time that grows with its length."""

import pytest

from seachange import errors
from seachange.sql.text.tokens import split_script

LONG = 20_000


@pytest.mark.parametrize(
    ("opening", "rest", "what"),
    [
        ("'", "a b ", "quoted string"),
        ("'", "it''s ", "quoted string"),
        ("e'", "a\\'b ", "quoted string"),
        ('"', 'a""b ', "quoted identifier"),
        ("/*", " a ", "/* comment"),
        ("$x$", " $y$ ", "dollar-quoted string"),
    ],
)
def test_an_open_quote_is_found_where_it_begins(opening: str, rest: str, what: str):
    text = f"select 'whole', e'who\\'le', 1;\nselect {opening}{rest * LONG}"
    with pytest.raises(errors.SyntaxProblem, match="unterminated") as problem:
        split_script(text)
    assert what in str(problem.value)
    assert problem.value.position == text.index(";\nselect ") + len(";\nselect ") + 1
