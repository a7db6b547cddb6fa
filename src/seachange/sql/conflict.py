"""ON CONFLICT as it is written: which unique keys decide, and what happens to the row that is there."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from seachange import errors
from seachange.model.descriptor import Index, Table
from seachange.sql.target import folded


@dataclass(frozen=True, slots=True)
class Arbiter:
    """A unique index, with the positions of its key in a row of the table."""

    index: Index
    positions: tuple[int, ...]

    def key(self, row: tuple[object, ...]) -> tuple[object, ...] | None:
        """None where a NULL makes the key distinct from every other."""
        key = tuple([row[position] for position in self.positions])
        return None if None in key and self.index.nulls_distinct else key

    @property
    def equality(self) -> type[exp.EQ] | type[exp.NullSafeEQ]:
        """How the columns of two rows compare that are in each other's way."""
        return exp.EQ if self.index.nulls_distinct else exp.NullSafeEQ


def read_arbiters(node: exp.OnConflict, table: Table) -> tuple[Arbiter, ...]:
    """The indexes whose conflicts are meant: those named, or all."""
    if node.args.get("index_predicate") is not None:
        raise errors.FeatureNotSupported(feature="ON CONFLICT (...) WHERE", instead="There are no partial indexes.")
    known = _unique_indexes(table)
    constraint, keys = node.args.get("constraint"), node.args.get("conflict_keys")
    if constraint is not None:
        found = [index for index in known if index.name == folded(constraint)]
        if not found:
            raise errors.UndefinedObject(kind=f"constraint on {table.name}", name=folded(constraint))
    elif keys:
        wanted = {_target_column(key, table) for key in keys}
        found = [index for index in known if set(index.key) == wanted]
        if not found:
            raise errors.InvalidConflictTarget()
    elif does_update(node):
        raise errors.SyntaxProblem(detail="ON CONFLICT DO UPDATE requires inference specification or constraint name")
    else:
        found = known
    positions = {column.id: i for i, column in enumerate(table.columns)}
    return tuple(Arbiter(index, tuple(positions[c] for c in index.key)) for index in found)


def does_update(node: exp.OnConflict) -> bool:
    action = str(node.args["action"].name).upper() if node.args.get("action") is not None else ""
    if node.args.get("duplicate") or action not in ("DO NOTHING", "DO UPDATE"):
        raise errors.SyntaxProblem(detail="ON CONFLICT takes DO NOTHING or DO UPDATE")
    return action == "DO UPDATE"


def _unique_indexes(table: Table) -> list[Index]:
    hidden = any(table.column_by_id[c].hidden for c in table.primary.key)
    return [*([] if hidden else [table.primary]), *(index for index in table.secondary if index.unique)]


def _target_column(node: exp.Expr, table: Table) -> object:
    column = node.this if isinstance(node, exp.Ordered) else node
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        raise errors.InvalidConflictTarget()
    name = folded(column.this)
    found = table.column_by_name.get(name)
    if found is None:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return found.id
