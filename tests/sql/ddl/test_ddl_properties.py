"""A statement that is printed is read back as it was; and no text makes the parser fail but with an error of ours."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.errors import Error
from seachange.sql.parsing.parse import parse_script
from tests.sql.ddl.printer import show
from tests.sql.ddl.strategies import FAMILIES
from tests.support.examples import examples

# What stands in for a word of a statement, or comes between two of them.
WORDS = """
    ( ) [ ] { } , ; . :: - + * = $ $1 ? 'x' 'x 1 -1 1e5 0x1 \u00b2 case end not null default select with as on to set
    values from if exists primary key check references generated always identity using index E'\\x' $$ " "" \u00e9
    \x01 /* -- \U0001f600 _ nextval( cast( interval array row over
"""
STRAY = st.sampled_from(WORDS.split())


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_what_is_printed_is_read_back(family, data):
    statement = data.draw(FAMILIES[family])
    assert parse_script(show(statement)) == (statement,)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_damaged_statement_is_an_error_of_ours_or_another_statement(family, data):
    words = show(data.draw(FAMILIES[family])).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words) - 1))
        taken = data.draw(st.integers(0, 2))
        words[place : place + taken] = data.draw(st.lists(STRAY | st.sampled_from(words), max_size=2))
        words = words or ["("]
    parse_or_refuse(" ".join(words))


@given(st.text())
def test_any_text(text):
    parse_or_refuse(text)


@pytest.mark.parametrize(
    ("start", "middle", "end"),
    [
        ("create table t (a int default ", "(", ""),
        ("create table t (a int default ", "(", "1" + ")" * 3001),
        ("create table t (a int check ", "(", "a" + ")" * 3001),
        ("create view v as select ", "(", "1" + ")" * 3000),
        ("alter table t alter a type int using ", "case when a then ", ""),
        ("create sequence q start ", "9", ""),
    ],
)
def test_deep_and_long(start, middle, end):
    parse_or_refuse(start + middle * 3000 + end)


def parse_or_refuse(text):
    with suppress(Error):
        parse_script(text)
