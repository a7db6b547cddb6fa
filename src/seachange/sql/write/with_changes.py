"""WITH queries that change rows: each runs as a separate statement and passes the rows that it returns to later ones.
So does a read-only query that several parts use: it is evaluated once.

All parts of the statement must see the rows as they were before it. The parts run in sequence, so a part that would
read what an earlier one has changed is rejected; foreign key actions wait for the end.

**Invariant:** a failed statement leaves none of its writes: the parts are undone, and retried, as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.schema.objects import View
from seachange.sql.compile.system_relations import is_virtual_relation
from seachange.sql.compile.target import DmlTarget, folded, read_target
from seachange.sql.compile.type_holes import duck_type
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import check_argument_count
from seachange.sql.duck.returned_rows import given_field
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.plan import CompilePlan, StatementPlan
from seachange.sql.query.query import SharedRows, count_parameters
from seachange.sql.text.scope import GIVEN, is_cte_reference
from seachange.sql.write.returning import given_table
from seachange.storage.arrow import arrow_type
from seachange.values.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX, QUOTIENT_SCALES, TEXT, Kind, SqlType

_CHANGES: Final = (exp.Insert, exp.Update, exp.Delete)


def changing_queries(tree: exp.Expr) -> list[exp.CTE]:
    """The queries of a statement's WITH that change rows."""
    clause = tree.args.get("with_")
    return [cte for cte in clause.expressions if _changes(cte)] if clause is not None else []


def _changes(cte: exp.CTE) -> bool:
    return isinstance(cte.this, _CHANGES)


@dataclass(frozen=True, slots=True)
class _Part:
    """`name` is the name under which its rows are passed on, empty for none. `count` is the number of its own
    parameters. It changes `target` and reads the relations in `reads`."""

    plan: StatementPlan | SharedRows
    count: int
    name: str
    target: DmlTarget | None
    reads: tuple[tuple[str | None, str], ...]


@dataclass(frozen=True, slots=True)
class _Handed:
    """The name under which rows are passed on, empty for none, and the column names that WITH gives."""

    name: str
    columns: tuple[exp.Identifier, ...] = ()


class WithChanges:
    def __init__(self, tree: exp.Expr, port: TransactionPort, compile_plan: CompilePlan) -> None:
        clause = tree.args["with_"]
        self._recursive = bool(clause.args.get("recursive"))
        self._parts: list[_Part] = []
        # Read-only queries that are inlined into the parts that need them.
        self._inlined: list[exp.CTE] = []
        # By the names in the statement.
        self._handed: dict[str, _Handed] = {}
        rest = tree.copy()
        rest.set("with_", None)
        _check_names(clause.expressions)
        self._needs = {_name(cte): _names_in(cte.this) for cte in clause.expressions if not _changes(cte)}
        shared = self._shared_names(clause.expressions, rest)
        for cte in clause.expressions:
            name = _name(cte)
            if _changes(cte):
                self._add_change(cte, port, compile_plan)
            elif name in shared:
                self._add_query(cte, name)
            else:
                self._inlined.append(cte)
        self._add(self._with_queries(rest), "", port, compile_plan)
        self._expected = max(part.count for part in self._parts)

    def _add_change(self, cte: exp.CTE, port: TransactionPort, compile_plan: CompilePlan) -> None:
        name = self._next_name() if cte.this.args.get("returning") else ""
        self._add(self._with_queries(cte.this), name, port, compile_plan)
        self._handed[_name(cte)] = _Handed(name, tuple(cte.args["alias"].columns))

    def _add(self, statement: exp.Expr, name: str, port: TransactionPort, compile_plan: CompilePlan) -> None:
        _take_handed(statement, self._handed)
        plan = compile_plan(statement, port)
        self._parts.append(_Part(plan, count_parameters(statement), name, _target(statement), _reads(statement)))

    def _add_query(self, cte: exp.CTE, name: str) -> None:
        everything = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.to_table(name, quoted=True)))
        self._inlined.append(cte)
        query = self._with_queries(everything)
        self._inlined.pop()
        _take_handed(query, self._handed)
        reads = _reads(query)
        rows = SharedRows(query)
        handed = self._next_name()
        self._parts.append(_Part(rows, rows.count, handed, None, reads))
        self._handed[name] = _Handed(handed)

    def _next_name(self) -> str:
        return f"with_{len(self._parts)}"

    def _with_queries(self, statement: exp.Expr) -> exp.Expr:
        """The statement with the read-only queries that precede it."""
        part = statement.copy()
        own = part.args.get("with_")
        needed = self._needed(_names_in(part))
        queries = [cte.copy() for cte in self._inlined if _name(cte) in needed]
        queries += own.expressions if own is not None else ()
        if queries:
            recursive = self._recursive or bool(own is not None and own.args.get("recursive"))
            part.set("with_", exp.With(expressions=queries, recursive=recursive))
        return part

    def _needed(self, names: set[str]) -> set[str]:
        """These names, and those that their read-only queries need."""
        found, waiting = set(names), list(names & self._needs.keys())
        while waiting:
            for name in self._needs[waiting.pop()] - found:
                found.add(name)
                waiting += [name] if name in self._needs else []
        return found

    def _shared_names(self, ctes: Sequence[exp.CTE], rest: exp.Expr) -> set[str]:
        """Read-only queries that more than the next part needs: inlined into each, they would be evaluated again, with
        other values of volatile functions and changed tables."""
        parts = [(place, cte.this) for place, cte in enumerate(ctes) if _changes(cte)] + [(len(ctes), rest)]
        needed = {place: self._needed(_names_in(statement)) for place, statement in parts}
        shared: set[str] = set()
        for place, cte in enumerate(ctes):
            next_part = min(at for at in needed if at >= place)
            if not _changes(cte) and any(_name(cte) in needed[at] for at in needed if at != next_part):
                shared.add(_name(cte))
        return shared

    def is_current(self, port: TransactionPort) -> bool:
        return all(isinstance(part.plan, SharedRows) or part.plan.is_current(port) for part in self._parts)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        _refuse_reads(self._parts, port)
        try:
            with port.writes.together():
                return [self._run_part(part, port, duck, values) for part in self._parts][-1]
        finally:
            port.statement.handed.clear()

    def _run_part(self, part: _Part, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        given = values[: part.count]
        if isinstance(part.plan, SharedRows):
            port.statement.handed[part.name] = part.plan.read(port, duck, given)
            return Result("")
        result = part.plan.run(port, duck, given)
        if part.name:
            port.statement.handed[part.name] = _as_arrow(result, port)
        return result


def _check_names(ctes: Sequence[exp.CTE]) -> None:
    names = [_name(cte) for cte in ctes]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise errors.DuplicateAlias(detail=f'WITH query name "{name}" specified more than once')


def _names_in(tree: exp.Expr) -> set[str]:
    tables = tree.find_all(exp.Table)
    return {folded(table.this) for table in tables if isinstance(table.this, exp.Identifier) and not table.db}


def _name(cte: exp.CTE) -> str:
    return folded(cte.args["alias"].this)


def _take_handed(part: exp.Expr, handed: dict[str, _Handed]) -> None:
    for table in list(part.find_all(exp.Table)):
        name = folded(table.this) if isinstance(table.this, exp.Identifier) and not table.db else ""
        if name not in handed or _is_target(table) or is_cte_reference(table):
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
    return isinstance(above, (*_CHANGES, exp.Merge)) and (above.this is table or above.this is table.parent)


def _target(part: exp.Expr) -> DmlTarget | None:
    if not isinstance(part, _CHANGES):
        return None
    return read_target(part.this.this if isinstance(part.this, exp.Schema) else part.this)


def _reads(part: exp.Expr) -> tuple[tuple[str | None, str], ...]:
    """The relations that it reads: not the table of an INSERT, unless ON CONFLICT reads it."""
    found: list[tuple[str | None, str]] = []
    for table in part.find_all(exp.Table):
        is_written = _is_target(table) and isinstance(part, exp.Insert) and not part.args.get("conflict")
        if is_written or not isinstance(table.this, exp.Identifier) or table.meta_get(GIVEN):
            continue
        schema, name = folded(table.args["db"]) if table.args.get("db") is not None else None, folded(table.this)
        if (_is_target(table) or not is_cte_reference(table)) and not is_virtual_relation(schema, name):
            found.append((schema, name))
    return tuple(found)


def _refuse_reads(parts: Sequence[_Part], port: TransactionPort) -> None:
    changed: set[DescriptorId] = set()
    for part in parts:
        for schema, name in part.reads if changed else ():
            if not changed.isdisjoint(_read_by(port.names.relation(schema, name), port)):
                raise errors.FeatureNotSupported(
                    feature=f'reading "{name}" in a statement whose WITH changes it',
                    instead="Return what is needed from the WITH query, or read it in an earlier statement.",
                )
        if part.target is not None:
            changed.add(DescriptorId(part.target.resolve(port).id))


def _read_by(found: Any, port: TransactionPort) -> Iterator[DescriptorId]:
    yield found.id
    if isinstance(found, View):
        for id_ in found.relation_ids:
            read = port.schema.object_by_id(id_) or port.schema.table_by_id(id_)
            if read is not None:
                yield from _read_by(read, port)


def _as_arrow(result: Result, port: TransactionPort) -> pa.Table:
    described = result.columns or ()
    types = [column.type or TEXT for column in described]
    fields = [given_field(c.name, type_, duck_type(type_, port)) for c, type_ in zip(described, types, strict=True)]
    columns = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(fields)
    made = [_as_array(held, type_) for held, type_ in zip(columns, types, strict=True)]
    fields = [field.with_type(array.type) for field, array in zip(fields, made, strict=True)]
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


def _as_array(held: Sequence[Any], type_: SqlType) -> pa.Array:
    """With all digits of a quotient, which has more than a numeric without declared digits."""
    behind = max((-int(value.as_tuple().exponent) for value in held if isinstance(value, Decimal)), default=0)
    if type_.kind is not Kind.NUMERIC or type_.precision or behind <= NUMERIC_DEFAULT[1]:
        return pa.array(list(held), arrow_type(type_))
    scale = min(scale for scale in QUOTIENT_SCALES if scale >= behind)
    return pa.array(list(held), pa.decimal128(NUMERIC_PRECISION_MAX, scale))
