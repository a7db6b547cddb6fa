"""CREATE TABLE, DROP TABLE, ALTER TABLE."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements import (
    AlterTable,
    ColumnDefinition,
    CreateTable,
    DropTable,
    KeyDefinition,
    RenameColumn,
    RenameTable,
)
from seachange.sql.ddl.column import InlineColumn, read_action, read_column, refuse_unsupported
from seachange.sql.ddl.names import read_relation
from seachange.sql.tokens import Reader

_TABLE_CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign", "exclude", "like")


def read_create_table(reader: Reader) -> CreateTable:
    if_not_exists = reader.take("if", "not", "exists")
    table = read_relation(reader)
    if not reader.take_symbol("("):
        raise errors.FeatureNotSupported(
            feature="CREATE TABLE without a list of columns", instead="Create it, then INSERT ... SELECT."
        )
    columns: list[InlineColumn] = []
    primary: list[KeyDefinition] = []
    unique: list[KeyDefinition] = []
    while True:
        if any(reader.at(word) for word in _TABLE_CONSTRAINTS):
            _read_constraint(reader, primary, unique)
        else:
            columns.append(_column(reader, primary, unique))
        if not reader.take_symbol(","):
            break
    reader.expect_symbol(")")
    if not reader.at_end:
        raise errors.FeatureNotSupported(feature="an option after the list of columns", instead="")
    if len(primary) > 1:
        raise errors.InvalidTableDefinition(name=table, detail="more than one primary key")
    definitions = tuple(column.definition for column in columns)
    return CreateTable(
        table,
        _key_columns_not_null(definitions, primary),
        primary[0] if primary else None,
        tuple(unique),
        if_not_exists,
    )


def _column(reader: Reader, primary: list[KeyDefinition], unique: list[KeyDefinition]) -> InlineColumn:
    column = read_column(reader)
    key = KeyDefinition((column.definition.name,))
    if column.primary_key:
        primary.append(key)
    if column.unique:
        unique.append(key)
    return column


def _read_constraint(reader: Reader, primary: list[KeyDefinition], unique: list[KeyDefinition]) -> None:
    name = reader.name() if reader.take("constraint") else None
    if reader.take("primary", "key"):
        primary.append(KeyDefinition(reader.names(), name))
    elif reader.take("unique"):
        if reader.at("nulls"):
            raise errors.FeatureNotSupported(feature="UNIQUE NULLS [NOT] DISTINCT", instead="")
        unique.append(KeyDefinition(reader.names(), name))
    elif reader.at("foreign"):
        raise errors.FeatureNotSupported(feature="a FOREIGN KEY constraint", instead="")
    elif reader.at("like") or reader.at("exclude"):
        raise errors.FeatureNotSupported(feature="LIKE or EXCLUDE in CREATE TABLE", instead="")
    else:
        refuse_unsupported(reader)
        raise reader.problem()


def _key_columns_not_null(
    columns: tuple[ColumnDefinition, ...], primary: list[KeyDefinition]
) -> tuple[ColumnDefinition, ...]:
    key = {name for definition in primary for name in definition.columns}
    return tuple(ColumnDefinition(c.name, c.type, c.nullable and c.name not in key, c.default) for c in columns)


def read_drop_table(reader: Reader) -> DropTable:
    if_exists = reader.take("if", "exists")
    tables = [read_relation(reader)]
    while reader.take_symbol(","):
        tables.append(read_relation(reader))
    # Nothing can depend on a table yet, so that CASCADE and RESTRICT mean the same.
    reader.take_any("cascade", "restrict")
    reader.expect_end()
    return DropTable(tuple(tables), if_exists)


def read_alter_table(reader: Reader) -> AlterTable:
    if reader.at("concurrently"):
        raise errors.FeatureNotSupported(feature="ALTER TABLE CONCURRENTLY", instead="Use ALTER TABLE.")
    if_exists = reader.take("if", "exists")
    reader.take("only")
    table = read_relation(reader)
    actions = [read_action(reader)]
    while reader.take_symbol(","):
        actions.append(read_action(reader))
    reader.expect_end()
    if len(actions) > 1 and any(isinstance(a, RenameTable | RenameColumn) for a in actions):
        raise errors.SyntaxProblem(detail="RENAME stands alone in ALTER TABLE")
    return AlterTable(table, tuple(actions), if_exists)
