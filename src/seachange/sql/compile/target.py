"""DML targets: the table that a statement changes, and the columns that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from seachange import errors
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.objects import View
from seachange.model.states import REFUSING
from seachange.sql.compile.bound_catalog import NOTHING_RESOLVED, Resolved
from seachange.sql.compile.system_relations import is_system
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.duck.operands import NULL, DefaultValue, DrawnValue, Given, Operand
from seachange.sql.pgcatalog.rows import find_relation
from seachange.sql.port.port import SequencePort, TransactionPort
from seachange.sql.port.result import Row
from seachange.sql.text.tree import OVERRIDING

# Key of `meta` of the table that a statement changes.
RESOLVED: Final = "resolved"


@dataclass(frozen=True, slots=True)
class DmlTarget:
    schema: str | None
    name: str
    alias: str
    # What the statement was bound to.
    resolved: Resolved = NOTHING_RESOLVED

    def resolve(self, port: TransactionPort) -> Table:
        if is_system(self.schema, self.name):
            raise errors.NotInPrerequisiteState(detail=f"view {self.schema}.{self.name} cannot be changed")
        if find_relation(self.schema, self.name) is not None:
            raise errors.InsufficientPrivilege(detail=f'"{self.name}" is a system catalog')
        found = port.names.relation(self.schema, self.name)
        if isinstance(found, View):
            raise errors.NotInPrerequisiteState(detail=f'view "{self.name}" is read-only')
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=self.name, kind="table")
        return found

    def find_table(self, port: TransactionPort) -> Table | None:
        """None if it is a view or sequence."""
        found = port.names.relation(self.schema, self.name)
        return found if isinstance(found, Table) else None


def folded(identifier: exp.Expr) -> str:
    quoted = isinstance(identifier, exp.Identifier) and identifier.quoted
    return identifier.name if quoted else identifier.name.lower()


def read_target(node: exp.Expr | None) -> DmlTarget:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise errors.SyntaxProblem(detail="a table is expected")
    if node.args.get("joins"):
        raise errors.FeatureNotSupported(feature="a join as the target of a change", instead="")
    schema, alias = node.args.get("db"), node.args.get("alias")
    name = folded(node.this)
    return DmlTarget(
        folded(schema) if schema is not None else None,
        name,
        folded(alias.this) if alias is not None else name,
        node.meta_get(RESOLVED) or NOTHING_RESOLVED,
    )


def find_column(table: Table, name: str) -> Column:
    column = table.column_by_name.get(name)
    if column is None:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return column


# The position of a column whose value is computed when the statement runs, and the column with its default.
DrawnPlace = tuple[int, Column]


def with_default(column: Column, operand: Operand) -> Operand:
    """The operand, or the value that DEFAULT means. Generated columns are computed later."""
    if not isinstance(operand, DefaultValue):
        return operand
    if column.generated is not None:
        return NULL
    return DrawnValue(column) if is_drawn(column) else Given(constant_value(column.type, column.default))


def draw_defaults(port: TransactionPort, places: Mapping[DrawnPlace, Sequence[int]], rows: list[Row]) -> None:
    """Fills computed defaults into rows, in place; `places` are the row numbers, by column."""
    for (position, column), numbers in places.items():
        values = port.sequences.defaults(column, len(numbers))
        for number, value in zip(numbers, values, strict=True):
            rows[number] = (*rows[number][:position], value, *rows[number][position + 1 :])


def missing_values(sequences: SequencePort, column: Column, count: int) -> list[Any]:
    """The values of a column for rows that do not provide one."""
    if is_computed(column):
        return [None] * count
    if is_drawn(column):
        return sequences.defaults(column, count)
    return [constant_value(column.type, column.default)] * count


def check_assigned(column: Column, operand: Operand | None, action: str, overriding: str | None = None) -> None:
    """Raises 428C9 if a statement assigns to a generated or identity column; `overriding` is the OVERRIDING clause."""
    if isinstance(operand, DefaultValue):
        return
    if column.generated is not None:
        raise errors.GeneratedAlways(action=action, column=column.name, kind="a generated column")
    if column.identity is not None and column.identity.always and overriding is None:
        kind = "an identity column defined as GENERATED ALWAYS"
        raise errors.GeneratedAlways(action=action, column=column.name, kind=kind)


def overriding_of(tree: exp.Expr) -> str | None:
    """What the OVERRIDING clause of an INSERT names: SYSTEM or USER."""
    found: str | None = tree.meta_get(OVERRIDING)
    return found


def is_ignored(column: Column, overriding: str | None) -> bool:
    """Whether OVERRIDING USER VALUE ignores the value given for a column."""
    return overriding == "user" and column.identity is not None


def is_required(column: Column) -> bool:
    """Whether a row without a value is rejected."""
    return not column.nullable and column.not_null in REFUSING and not is_computed(column)


def is_computed(column: Column) -> bool:
    """Whether the engine computes the column: the hidden key and generated columns."""
    return column.hidden or column.conversion is not None or column.generated is not None


def refuse_clauses(tree: exp.Expr, clauses: dict[str, str]) -> None:
    """`clauses`: unsupported arguments of the tree, with their names for the error message."""
    for key, feature in clauses.items():
        if tree.args.get(key):
            raise errors.FeatureNotSupported(feature=feature, instead="")
