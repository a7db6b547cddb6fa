"""WITH whose queries change rows: each is a statement of its own, and hands the rows that it returns to those behind.

All parts of the statement are to see the rows as they were before it. The parts run one after the other, so a part that
would read what one before it has changed is refused.

**Invariant:** a statement that fails leaves none of its writes: the parts are undone, and run again, as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.constraint import Action
from seachange.model.descriptor import Table
from seachange.model.ids import DescriptorId
from seachange.model.objects import View
from seachange.model.types import TEXT
from seachange.sql.duck import DuckSession
from seachange.sql.operands import check_argument_count
from seachange.sql.plan import CompilePlan, Plan
from seachange.sql.port import TransactionPort
from seachange.sql.result import Result
from seachange.sql.returned import given_field
from seachange.sql.returning import given_table
from seachange.sql.system import is_told
from seachange.sql.target import folded, read_target
from seachange.sql.template import GIVEN
from seachange.storage.arrow import arrow_type

# Actions of foreign keys that change nothing.
_STILL = frozenset({Action.NO_ACTION, Action.RESTRICT})
_CHANGES = (exp.Insert, exp.Update, exp.Delete)


def changing_queries(tree: exp.Expr) -> list[exp.CTE]:
    """Those of the WITH in front of a statement that change rows."""
    clause = tree.args.get("with_")
    return [cte for cte in clause.expressions if isinstance(cte.this, _CHANGES)] if clause is not None else []


@dataclass(frozen=True, slots=True)
class _Part:
    """`name` is the one under which its rows are handed on: empty for none. `count` parameters are its own."""

    plan: Plan
    count: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Handed:
    """The name under which rows are handed on, empty for none, and those that WITH gives to their columns."""

    name: str
    columns: tuple[exp.Identifier, ...]


class WithChanges:
    def __init__(self, tree: exp.Expr, port: TransactionPort, compile_plan: CompilePlan) -> None:
        clause = tree.args["with_"]
        self._parts: list[_Part] = []
        plain: list[exp.CTE] = []
        # By the names that the statement gives.
        handed: dict[str, _Handed] = {}
        changed: set[DescriptorId] = set()
        rest = tree.copy()
        rest.set("with_", None)
        statements = [*((cte, cte.this) for cte in clause.expressions), (None, rest)]
        for cte, statement in statements:
            if cte is not None and not isinstance(statement, _CHANGES):
                plain.append(cte)
                continue
            part = _with_queries(statement, plain, bool(clause.args.get("recursive")))
            _take_handed(part, handed)
            _refuse_reads(part, changed, port)
            changed |= set(_changed_by(part, port))
            name = f"with_{len(self._parts)}" if cte is not None and statement.args.get("returning") else ""
            self._parts.append(_Part(compile_plan(part, port), count_parameters(part), name))
            if cte is not None:
                handed[_name(cte)] = _Handed(name, tuple(cte.args["alias"].columns))
        self._expected = max(part.count for part in self._parts)

    def is_current(self, port: TransactionPort) -> bool:
        return all(part.plan.is_current(port) for part in self._parts)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        try:
            for part in self._parts[:-1]:
                result = part.plan.run(port, duck, values[: part.count])
                if part.name:
                    port.handed[part.name] = _as_arrow(result)
            last = self._parts[-1]
            return last.plan.run(port, duck, values[: last.count])
        finally:
            port.handed.clear()


def _name(cte: exp.CTE) -> str:
    return folded(cte.args["alias"].this)


def count_parameters(tree: exp.Expr) -> int:
    return max((int(node.this.name) for node in tree.find_all(exp.Parameter) if node.this.name.isdigit()), default=0)


def _with_queries(statement: exp.Expr, plain: Sequence[exp.CTE], recursive: bool) -> exp.Expr:
    """The statement with the queries before it that only read."""
    part = statement.copy()
    own = part.args.get("with_")
    queries = [*(cte.copy() for cte in plain), *(own.expressions if own is not None else ())]
    if queries:
        recursive = recursive or bool(own is not None and own.args.get("recursive"))
        part.set("with_", exp.With(expressions=queries, recursive=recursive))
    return part


def _take_handed(part: exp.Expr, handed: dict[str, _Handed]) -> None:
    for table in list(part.find_all(exp.Table)):
        name = folded(table.this) if isinstance(table.this, exp.Identifier) and not table.db else ""
        if name not in handed or _is_target(table):
            continue
        source, alias = handed[name], table.args.get("alias")
        if not source.name:
            feature = f'reading WITH query "{name}", which has no RETURNING,'
            raise errors.FeatureNotSupported(feature=feature, instead="Add RETURNING to it.")
        rows = given_table(source.name, folded(alias.this) if alias is not None else name)
        named = alias.columns if alias is not None and alias.columns else source.columns
        if named:
            rows.args["alias"].set("columns", [column.copy() for column in named])
        rows.set("joins", table.args.get("joins"))
        table.replace(rows)


def _is_target(table: exp.Expr) -> bool:
    above = table.parent if not isinstance(table.parent, exp.Schema) else table.parent.parent
    return isinstance(above, _CHANGES) and above.this in (table, table.parent)


def _changed_by(part: exp.Expr, port: TransactionPort) -> Iterator[DescriptorId]:
    """The table, and those whose rows follow when its keys go or change."""
    if not isinstance(part, _CHANGES):
        return
    target = part.this.this if isinstance(part.this, exp.Schema) else part.this
    waiting, seen = [read_target(target).resolve(port)], set()
    while waiting:
        table = waiting.pop()
        if table.id in seen:
            continue
        seen.add(table.id)
        yield DescriptorId(table.id)
        if not isinstance(part, exp.Insert):
            waiting += [child for child in port.tables() if _follows(child, table)]


def _follows(child: Table, parent: Table) -> bool:
    """Whether rows of one change with those of the other."""
    keys = [key for key in child.foreign_keys if key.parent == parent.id]
    return any(action not in _STILL for key in keys for action in (key.on_delete, key.on_update))


def _refuse_reads(part: exp.Expr, changed: set[DescriptorId], port: TransactionPort) -> None:
    if not changed:
        return
    own = {_name(cte) for cte in part.find_all(exp.CTE)}
    for table in part.find_all(exp.Table):
        is_written = _is_target(table) and isinstance(part, exp.Insert)
        if is_written or not isinstance(table.this, exp.Identifier) or table.meta.get(GIVEN):
            continue
        schema, name = folded(table.args["db"]) if table.args.get("db") is not None else None, folded(table.this)
        if (schema is None and name in own) or is_told(schema, name):
            continue
        if not changed.isdisjoint(_read_by(port.relation(schema, name), port)):
            raise errors.FeatureNotSupported(
                feature=f'reading "{name}" in a statement whose WITH changes it',
                instead="Let the WITH query return what is needed, or read it in a statement before.",
            )


def _read_by(found: Any, port: TransactionPort) -> Iterator[DescriptorId]:
    yield found.id
    if isinstance(found, View):
        for id_ in found.relation_ids:
            read = port.object_by_id(id_) or port.table_by_id(id_)
            if read is not None:
                yield from _read_by(read, port)


def _as_arrow(result: Result) -> pa.Table:
    described = result.columns or ()
    types = [column.type or TEXT for column in described]
    fields = [given_field(column.name, type_) for column, type_ in zip(described, types, strict=True)]
    columns = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(fields)
    arrays = [pa.array(list(held), arrow_type(type_)) for held, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
