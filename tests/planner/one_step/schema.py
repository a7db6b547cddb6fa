"""Statements for tests of the planner, which knows no SQL text, and a schema to run them on."""

from itertools import count

from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.statements.table_statements import (
    AlterTable,
    ColumnDefinition,
    CreateTable,
    DdlStatement,
    KeyDefinition,
)
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.planner.one_step.statement import Plan, ids_needed, plan_statement

INTEGER = SqlType(Kind.INTEGER)
NAME = RelationName(None, "t")


class Schema:
    """Tables by name, to which plans are applied as a transaction would."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Table] = {}
        self._ids = count(1)

    def run(self, statement: DdlStatement) -> Plan:
        ids = [next(self._ids) for _ in range(ids_needed(statement))]
        plan = plan_statement(statement, dict(self.tables), iter(ids))
        for change in plan.changes:
            if change.before is not None:
                del self.tables[change.before.schema, change.before.name]
            if change.after is not None:
                self.tables[change.after.schema, change.after.name] = change.after
        return plan

    def alter(self, *actions) -> Plan:
        return self.run(AlterTable(NAME, actions))

    @property
    def table(self) -> Table:
        return self.tables["public", "t"]


def create(*columns: ColumnDefinition, **fields) -> CreateTable:
    return CreateTable(NAME, columns, **fields)


def schema_with_table() -> Schema:
    """t (id bigint primary key, a integer unique, b text)"""
    schema = Schema()
    schema.run(
        create(
            ColumnDefinition("id", BIGINT, nullable=False),
            ColumnDefinition("a", INTEGER),
            ColumnDefinition("b", TEXT),
            primary_key=KeyDefinition(("id",)),
            unique=(KeyDefinition(("a",)),),
        )
    )
    return schema
