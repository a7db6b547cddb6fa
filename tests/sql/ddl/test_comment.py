"""COMMENT ON."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import CommentOn
from seachange.sql.change.command_tags import command_tag
from tests.sql.ddl.parsing import ST, T, code, name, parse

M = name("m")


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("comment on database m is 'x'", CommentOn(ObjectKind.DATABASE, M, None, "x"), "COMMENT"),
        ("comment on schema m is null", CommentOn(ObjectKind.SCHEMA, M, None, None), "COMMENT"),
        ("comment on table s.t is 'it''s'", CommentOn(ObjectKind.TABLE, ST, None, "it's"), "COMMENT"),
        ("comment on column t.a is 'x'", CommentOn(ObjectKind.COLUMN, T, "a", "x"), "COMMENT"),
        ("comment on column s.t.a is 'x'", CommentOn(ObjectKind.COLUMN, ST, "a", "x"), "COMMENT"),
        ("comment on index s.t is 'x'", CommentOn(ObjectKind.INDEX, ST, None, "x"), "COMMENT"),
        ("comment on constraint c on s.t is 'x'", CommentOn(ObjectKind.CONSTRAINT, ST, "c", "x"), "COMMENT"),
        ("comment on sequence m is 'x'", CommentOn(ObjectKind.SEQUENCE, M, None, "x"), "COMMENT"),
        ("comment on type m is 'x'", CommentOn(ObjectKind.TYPE, M, None, "x"), "COMMENT"),
        ("comment on view m is ''", CommentOn(ObjectKind.VIEW, M, None, ""), "COMMENT"),
    ],
)  # fmt: skip
def test_comment_on_is_read(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("comment on function f is 'x'", "0A000"),
        ("comment on oops f is 'x'", "42601"),
        ("comment on column a is 'x'", "42601"),
        ("comment on column a.b.c.d is 'x'", "42601"),
        ("comment on table t is x", "42601"),
    ],
)
def test_invalid_comment_on_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
