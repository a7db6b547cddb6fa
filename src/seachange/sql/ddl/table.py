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
from seachange.sql.ddl.column import read_action, read_column
from seachange.sql.ddl.constraint import TABLE_CONSTRAINTS, Constraints, read_table_constraint
from seachange.sql.ddl.names import read_relation
from seachange.sql.tokens import Reader


def read_create_table(reader: Reader) -> CreateTable:
    if_not_exists = reader.take("if", "not", "exists")
    table = read_relation(reader)
    if not reader.take_symbol("("):
        raise errors.FeatureNotSupported(
            feature="CREATE TABLE without a list of columns", instead="Create it, then INSERT ... SELECT."
        )
    columns: list[ColumnDefinition] = []
    constraints = Constraints()
    while True:
        if any(reader.at(word) for word in TABLE_CONSTRAINTS):
            read_table_constraint(reader, constraints)
        else:
            columns.append(read_column(reader, constraints))
        if not reader.take_symbol(","):
            break
    reader.expect_symbol(")")
    if not reader.at_end:
        raise errors.FeatureNotSupported(feature="an option after the list of columns", instead="")
    primary = constraints.primary
    if len(primary) > 1:
        raise errors.InvalidTableDefinition(name=table, detail="more than one primary key")
    return CreateTable(
        table,
        _key_columns_not_null(tuple(columns), primary),
        primary[0] if primary else None,
        tuple(constraints.unique),
        if_not_exists,
        tuple(constraints.rules),
    )


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
    cascade = reader.take_any("cascade", "restrict") == "cascade"
    reader.expect_end()
    return DropTable(tuple(tables), if_exists, cascade)


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
