"""ON CONFLICT parsing: the arbiter indexes, and the action on the existing row."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.expression import Expression
from seachange.sql.compile.bound import BoundText, virtual_column
from seachange.sql.compile.target import folded
from seachange.sql.ddl.expression import INDEX, PREDICATE, compile_expression
from seachange.sql.query.implied import as_conditions, implies, read_predicate
from seachange.sql.text.tokens import DIALECT


@dataclass(frozen=True, slots=True)
class Arbiter:
    """A unique index, with the positions of its key in a derived row of the table and of the flag whether it covers the
    row; plain if it covers all rows, by values of the row itself."""

    index: Index
    positions: tuple[int, ...]
    member: int | None
    is_plain: bool

    def key(self, row: tuple[object, ...]) -> tuple[object, ...] | None:
        """None if no other row can conflict: a NULL makes the key distinct, or the index does not cover the row."""
        if self.member is not None and row[self.member] is not True:
            return None
        key = tuple([row[position] for position in self.positions])
        return None if None in key and self.index.nulls_distinct else key

    @property
    def equality(self) -> type[exp.EQ] | type[exp.NullSafeEQ]:
        """How the columns of two conflicting rows compare."""
        return exp.EQ if self.index.nulls_distinct else exp.NullSafeEQ


def read_arbiters(node: exp.OnConflict, table: Table) -> tuple[Arbiter, ...]:
    """The arbiter indexes: those named, or all."""
    known = _unique_indexes(table)
    constraint, keys = node.args.get("constraint"), node.args.get("conflict_keys")
    if constraint is not None:
        found = [index for index in known if index.name == folded(constraint)]
        if not found:
            raise errors.UndefinedObject(kind=f"constraint on {table.name}", name=folded(constraint))
    elif keys:
        wanted = {_target_column(key, table) for key in keys}
        predicate = node.args.get("index_predicate")
        found = [i for i in known if set(i.key) == wanted and _is_about(i, predicate, table)]
        if not found:
            raise errors.InvalidConflictTarget()
    elif does_update(node):
        raise errors.SyntaxProblem(detail="ON CONFLICT DO UPDATE requires inference specification or constraint name")
    else:
        found = known
    return tuple(_arbiter(index, table) for index in found)


def _arbiter(index: Index, table: Table) -> Arbiter:
    positions = {column.id: i for i, column in enumerate(table.columns)}
    partial = [other.id for other in table.secondary if other.where is not None]
    member = None if index.where is None else len(table.columns) + partial.index(index.id)
    # In an earlier shape the values of a key may be computed when the row becomes one of now.
    is_plain = table.is_plain(index) and all(table.column_by_id[c].is_shown for c in index.key)
    return Arbiter(index, tuple(positions[c] for c in index.key), member, is_plain)


def _is_about(index: Index, predicate: exp.Expr | None, table: Table) -> bool:
    """Whether an index covers every row that meets the predicate: as in PostgreSQL, only then it is an arbiter."""
    if index.where is None:
        return True
    if predicate is None:
        return False
    condition = predicate.this if isinstance(predicate, exp.Where) else predicate
    definition = compile_expression(condition.sql(DIALECT), PREDICATE)
    text = BoundText(definition.pieces, definition.columns).bind(table)
    if text is None:
        raise errors.InvalidConflictTarget()
    given = as_conditions(read_predicate(Expression(text), table))
    return implies(given, read_predicate(index.where, table), table)


def does_update(node: exp.OnConflict) -> bool:
    action = str(node.args["action"].name).upper() if node.args.get("action") is not None else ""
    if node.args.get("duplicate") or action not in ("DO NOTHING", "DO UPDATE"):
        raise errors.SyntaxProblem(detail="ON CONFLICT requires DO NOTHING or DO UPDATE")
    return action == "DO UPDATE"


def _unique_indexes(table: Table) -> list[Index]:
    hidden = any(table.column_by_id[c].hidden for c in table.primary.key)
    return [*([] if hidden else [table.primary]), *(index for index in table.readable[1:] if index.unique)]


def _target_column(node: exp.Expr, table: Table) -> object:
    column = (node.this if isinstance(node, exp.Ordered) else node).unnest()
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        definition = compile_expression(column.sql(DIALECT), INDEX)
        virtual = virtual_column(BoundText(definition.pieces, definition.columns), table)
        if virtual is None:
            raise errors.InvalidConflictTarget()
        return virtual.id
    name = folded(column.this)
    found = table.column_by_name.get(name)
    if found is None:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return found.id
