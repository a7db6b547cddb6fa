"""Parameters are found outside literals, names and comments, and nowhere else."""

import pytest

from seachange.errors import SyntaxProblem
from seachange.sql.text.placeholders import isolate_parameters, number_parameters


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("select 1", "select 1"),
        ("values ($1,$2)", "values ( $1 , $2 )"),
        ("select '$1'", "select '$1'"),
        ("select 'it''s $1'", "select 'it''s $1'"),
        (r"select E'\'$1'", r"select E'\'$1'"),
        ('select "$1"', 'select "$1"'),
        ("select $$a $1$$", "select $$a $1$$"),
        ("select $tag$ $1 $$ $tag$,$1", "select $tag$ $1 $$ $tag$, $1 "),
        ("select 1 -- $1\n,$2", "select 1 -- $1\n, $2 "),
        ("select /* /* $1 */ $2 */ $3", "select /* /* $1 */ $2 */  $3 "),
        ("select a$1", "select a$1"),
    ],
)
def test_parameters_are_isolated_from_quotes_and_comments(text, isolated):
    assert isolate_parameters(text) == isolated


@pytest.mark.parametrize(
    ("text", "numbered", "names"),
    [
        ("select %s,%s", "select $1 ,$2 ", None),
        ("select %(a)s, %(b)s, %(a)s", "select $1 , $2 , $1 ", ("a", "b")),
        ("select 5 %% 2", "select 5 % 2", None),
        ("select '100%%'", "select '100%'", None),
        ("select 1 -- %s", "select 1 -- %s", None),
        ("select $1", "select $1", None),
    ],
)
def test_named_parameters_are_numbered(text, numbered, names):
    found = number_parameters(text)
    assert (found.text, found.names) == (numbered, names)


def test_named_values_are_taken_by_name():
    assert number_parameters("select %(b)s, %(a)s").values({"a": 1, "b": 2, "c": 3}) == [2, 1]


@pytest.mark.parametrize("text", ["select %s, %(a)s", "select 5 % 2", "select %d"])
def test_mixed_parameter_styles_are_rejected(text):
    with pytest.raises(SyntaxProblem):
        number_parameters(text)


def test_missing_and_mismatched_values():
    with pytest.raises(SyntaxProblem):
        number_parameters("select %(a)s").values({"b": 1})
    with pytest.raises(SyntaxProblem):
        number_parameters("select %(a)s").values([1])
    with pytest.raises(SyntaxProblem):
        number_parameters("select %s").values({"a": 1})
