"""GRANT and REVOKE."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import Grant
from seachange.sql.change.command_tags import command_tag
from tests.sql.ddl.parsing import ST, T, U, code, name, parse

M = name("m")


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("grant select, insert on t, s.t to a, b with grant option",
         Grant(("SELECT", "INSERT"), ObjectKind.TABLE, (T, ST), ("a", "b"), True), "GRANT"),
        ("grant all privileges on table t to public", Grant(("ALL",), ObjectKind.TABLE, (T,), ("public",)), "GRANT"),
        ("grant all on all sequences in schema t, u to group r",
         Grant(("ALL",), ObjectKind.SEQUENCE, (T, U), ("r",), all_in_schema=True), "GRANT"),
        ("grant usage, create on schema t to r", Grant(("USAGE", "CREATE"), ObjectKind.SCHEMA, (T,), ("r",)), "GRANT"),
        ("grant connect, temp on database t to r",
         Grant(("CONNECT", "TEMPORARY"), ObjectKind.DATABASE, (T,), ("r",)), "GRANT"),
        ("grant usage on type m to r", Grant(("USAGE",), ObjectKind.TYPE, (M,), ("r",)), "GRANT"),
        ("grant select on sequence to r", Grant(("SELECT",), ObjectKind.TABLE, (name("sequence"),), ("r",)), "GRANT"),
        ("revoke grant option for update on sequence t from r cascade",
         Grant(("UPDATE",), ObjectKind.SEQUENCE, (T,), ("r",), True, True, True), "REVOKE"),
        ("revoke all on t from r", Grant(("ALL",), ObjectKind.TABLE, (T,), ("r",), revoke=True), "REVOKE"),
    ],
)  # fmt: skip
def test_grant_and_revoke_are_read(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grant select (a) on t to r", "0A000"),
        ("grant select on t to r granted by s", "0A000"),
        ("grant execute on function f to r", "0A000"),
        ("grant usage on language l to r", "0A000"),
        ("grant all on all functions in schema s to r", "0A000"),
        ("grant usage on t to r", "0LP01"),
        ("grant select on schema s to r", "0LP01"),
        ("grant oops on t to r", "42601"),
        ("grant select on t", "42601"),
    ],
)
def test_invalid_grant_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
