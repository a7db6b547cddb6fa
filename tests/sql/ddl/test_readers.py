"""DDL that PostgreSQL supports and Seachange does not, and DDL that neither supports."""

import pytest

from tests.sql.ddl.parsing import code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create function f() returns int as $$ select 1; $$ language sql", "0A000"),
        ("create or replace procedure p() as $$ $$", "0A000"),
        ("create constraint trigger x after insert on t execute function f()", "0A000"),
        ("create event trigger x", "0A000"),
        ("drop trigger x on t", "0A000"),
        ("create extension if not exists x", "0A000"),
        ("create operator + (leftarg = int)", "0A000"),
        ("create domain d as int", "0A000"),
        ("do $$ begin end $$", "0A000"),
        ("create oops", "42601"),
        ("create", "42601"),
        ("drop", "42601"),
        ("alter t add a int", "42601"),
    ],
)
def test_unsupported_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
