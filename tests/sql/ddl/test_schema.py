"""CREATE, ALTER and DROP of schemas and databases."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import (
    ChangeOwner,
    CreateDatabase,
    CreateSchema,
    DropObjects,
    RenameObject,
)
from seachange.sql.change.command_tags import command_tag
from tests.sql.ddl.parsing import T, U, code, name, parse

M = name("m")


@pytest.mark.parametrize(
    ("text", "statement", "tag"),
    [
        ("create schema if not exists s", CreateSchema("s", True), "CREATE SCHEMA"),
        ("create schema s authorization r", CreateSchema("s", False, "r"), "CREATE SCHEMA"),
        ("create schema authorization r", CreateSchema("r", False, "r"), "CREATE SCHEMA"),
        ("alter schema m rename to n", RenameObject(ObjectKind.SCHEMA, M, "n"), "ALTER SCHEMA"),
        ("alter schema m owner to r", ChangeOwner(ObjectKind.SCHEMA, M, "r"), "ALTER SCHEMA"),
        ("drop schema if exists t, u cascade", DropObjects(ObjectKind.SCHEMA, (T, U), True, True), "DROP SCHEMA"),
        ("create database d", CreateDatabase("d"), "CREATE DATABASE"),
        ("create database d with owner = r encoding 'UTF8' template template0", CreateDatabase("d", "r"),
         "CREATE DATABASE"),
        ("alter database m rename to n", RenameObject(ObjectKind.DATABASE, M, "n"), "ALTER DATABASE"),
        ("drop database if exists m", DropObjects(ObjectKind.DATABASE, (M,), True), "DROP DATABASE"),
    ],
)  # fmt: skip
def test_schema_statement_is_read(text, statement, tag):
    assert parse(text) == statement
    assert command_tag(statement) == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create schema", "42601"),
        ("create schema s create table t (a int)", "0A000"),
        ("alter schema s set schema r", "0A000"),
        ("drop schema s.t", "42601"),
        ("create database d lc_collate 'C'", "0A000"),
        ("create database d encoding 'LATIN1'", "0A000"),
        ("create database d oops", "42601"),
        ("drop database d with (force)", "0A000"),
        ("drop database a, b", "42601"),
    ],
)
def test_invalid_schema_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
