"""CREATE INDEX CONCURRENTLY, DROP INDEX and ALTER INDEX."""

import pytest

from seachange.model.object_statements import (
    ObjectKind,
    RenameObject,
)
from seachange.model.statements import CreateIndex, DropIndex
from seachange.sql.ddl.tags import command_tag
from tests.sql.ddl.parsing import ST, T, code, name, parse


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("create index concurrently if not exists i on t (a)",
         CreateIndex(T, ("a",), "i", if_not_exists=True, concurrently=True), "CREATE INDEX"),
        ("drop index concurrently i", DropIndex((name("i"),), concurrently=True), "DROP INDEX"),
        ("drop index if exists i, s.t cascade", DropIndex((name("i"), ST), True, True), "DROP INDEX"),
        ("alter index if exists s.t rename to j", RenameObject(ObjectKind.INDEX, ST, "j", True), "ALTER INDEX"),
    ],
)  # fmt: skip
def test_statement(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("drop index concurrently a, b", "0A000"),
        ("alter index i set tablespace s", "0A000"),
        ("alter index i oops", "42601"),
    ],
)
def test_refused(text, expected):
    assert code(text) == expected
