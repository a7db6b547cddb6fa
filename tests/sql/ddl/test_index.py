"""CREATE INDEX CONCURRENTLY, DROP INDEX and ALTER INDEX."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import RenameObject
from seachange.model.statements.table_statements import CreateIndex, DropIndex
from seachange.sql.change.command_tags import command_tag
from tests.sql.ddl.parsing import ST, T, code, name, parse


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("create index concurrently if not exists i on t (a)",
         CreateIndex(T, ("a",), "i", if_not_exists=True, concurrently=True), "CREATE INDEX"),
        ("create index i on t using brin (a int4_minmax_ops(x = 1), b pg.text_ops desc nulls last, c nulls first)",
         CreateIndex(T, ("a", "b", "c"), "i", descending=(1,), nulls_swapped=(1, 2), method="brin"), "CREATE INDEX"),
        ("create index i on t (a nulls last, b desc nulls first)", CreateIndex(T, ("a", "b"), "i", descending=(1,)),
         "CREATE INDEX"),
        ("drop index concurrently i", DropIndex((name("i"),), concurrently=True), "DROP INDEX"),
        ("drop index if exists i, s.t cascade", DropIndex((name("i"), ST), True, True), "DROP INDEX"),
        ("alter index if exists s.t rename to j", RenameObject(ObjectKind.INDEX, ST, "j", True), "ALTER INDEX"),
    ],
)  # fmt: skip
def test_index_statement_is_read(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create index on t using gin (a public.gin_trgm_ops)", "0A000"),
        ("create index on t using gin (a jsonb_path_ops)", "0A000"),
        ("create index on t using brin (a range_inclusion_ops)", "0A000"),
        ("create index on t (a oops_ops)", "42704"),
        ("create index on t using rum (a)", "42704"),
        ("create unique index on t using hash (a)", "0A000"),
        ("drop index concurrently a, b", "0A000"),
        ("alter index i set tablespace s", "0A000"),
        ("alter index i oops", "42601"),
    ],
)
def test_invalid_index_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
