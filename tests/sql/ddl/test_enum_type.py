"""CREATE, ALTER and DROP TYPE."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import (
    AddEnumValue,
    ChangeOwner,
    CreateEnum,
    DropEnumValue,
    DropObjects,
    MoveObject,
    RenameEnumValue,
    RenameObject,
)
from seachange.sql.change.command_tags import command_tag
from tests.sql.ddl.parsing import ST, code, name, parse

M = name("m")


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("create type m as enum ('a', 'it''s')", CreateEnum(M, ("a", "it's")), "CREATE TYPE"),
        ("create type s.t as enum ()", CreateEnum(ST, ()), "CREATE TYPE"),
        ("alter type m add value 'x'", AddEnumValue(M, "x"), "ALTER TYPE"),
        ("alter type m add value if not exists 'x' before 'y'", AddEnumValue(M, "x", "y", None, True), "ALTER TYPE"),
        ("alter type m add value 'x' after 'y'", AddEnumValue(M, "x", None, "y"), "ALTER TYPE"),
        ("alter type m rename value 'x' to 'y'", RenameEnumValue(M, "x", "y"), "ALTER TYPE"),
        ("alter type m drop value 'x'", DropEnumValue(M, "x"), "ALTER TYPE"),
        ("alter type m rename to n", RenameObject(ObjectKind.TYPE, M, "n"), "ALTER TYPE"),
        ("alter type m set schema s", MoveObject(ObjectKind.TYPE, M, "s"), "ALTER TYPE"),
        ("alter type m owner to r", ChangeOwner(ObjectKind.TYPE, M, "r"), "ALTER TYPE"),
        ("drop type m restrict", DropObjects(ObjectKind.TYPE, (M,)), "DROP TYPE"),
    ],
)  # fmt: skip
def test_type_statement_is_read(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create type m as (a int)", "0A000"),
        ("create type m as range (subtype = int)", "0A000"),
        ("create type m (input = f)", "0A000"),
        ("create type m as enum", "42601"),
        ("create type m as enum (a)", "42601"),
        ("create type m oops", "42601"),
        ("alter type m add value 'x' before 'y' after 'z'", "42601"),
        ("alter type m add attribute a int", "0A000"),
        ("alter type m oops", "42601"),
    ],
)
def test_invalid_type_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
