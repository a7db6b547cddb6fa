"""SELECT ... FOR UPDATE / NO KEY UPDATE / SHARE / KEY SHARE [OF ...] [NOWAIT | SKIP LOCKED].

The query also returns the primary keys of the tables that it locks; rows are locked when they are found, before they
are returned. With SKIP LOCKED the limit applies to the rows that could be locked; the query returns a few more, and
many more only if that was not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.bound_catalog import PortCatalog
from seachange.sql.compile.target import DmlTarget, folded, read_target
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import Argument, Given, Operand, argument_count, check_argument_count, read_operand
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, Row
from seachange.sql.query.query import run_query
from seachange.sql.text.scope import WITH_HIDDEN, is_cte_reference

# (UPDATE or SHARE, with KEY), as the parser has them.
_STRENGTHS: dict[tuple[bool, bool], LockStrength] = {
    (True, False): LockStrength.UPDATE,
    (True, True): LockStrength.NO_KEY_UPDATE,
    (False, False): LockStrength.SHARE,
    (False, True): LockStrength.KEY_SHARE,
}
_POLICIES: dict[bool | None, LockPolicy] = {None: LockPolicy.WAIT, True: LockPolicy.NOWAIT, False: LockPolicy.SKIP}
# Clauses after which a result row is no longer a row of a table.
_REFUSED = {
    "group": "GROUP BY",
    "having": "HAVING",
    "distinct": "DISTINCT",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
}


# Other transactions may have locked some: this many more rows than needed are read first, then a multiple each time.
_SPARE_ROWS = 64
_GROWTH = 16
_ALL_ROWS = 1 << 40


@dataclass(frozen=True, slots=True)
class LockedTable:
    """One table of the query, and the position of its key among the added columns."""

    target: DmlTarget
    table: Table
    strength: LockStrength
    policy: LockPolicy
    first: int

    def key(self, row: Row) -> Row:
        return row[self.first : self.first + len(self.table.primary.key)]


class LockingSelect:
    def __init__(self, tree: exp.Query, port: TransactionPort) -> None:
        query = tree.copy()
        locks = [lock.pop() for lock in list(query.args["locks"])]
        query.set("locks", None)
        select = _checked(query)
        self._locked, added = _lock_tables(select, locks, port)
        self._skips = any(locked.policy is LockPolicy.SKIP for locked in self._locked)
        clauses = [select.args[key].pop() for key in ("limit", "offset") if self._skips and select.args.get(key)]
        self._limit = _read_count(clauses, exp.Limit)
        self._offset = _read_count(clauses, exp.Offset)
        for column in added:
            select.append("expressions", column)
        self._added = len(added)
        given = [operand for operand in (self._limit, self._offset) if operand is not None]
        in_query = [int(node.this.name) for node in select.find_all(exp.Parameter) if node.this.name.isdigit()]
        self._expected = max((argument_count(given), *in_query))
        if self._limit is not None:
            # The number of rows to read, as one more parameter.
            select.set("limit", exp.Limit(expression=exp.Parameter(this=exp.Literal.number(self._expected + 1))))
        self._template: Template = compile_template(select, catalog=PortCatalog(port))

    def is_current(self, port: TransactionPort) -> bool:
        return self._template.resolved.is_current(port)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        for locked in self._locked:
            port.rights.check_access(locked.table, "SELECT")
            port.rights.check_access(locked.table, "UPDATE")
        check_argument_count(self._expected, values)
        limit, offset = _count(self._limit, values), _count(self._offset, values) or 0
        wanted = None if limit is None else limit + offset
        asked = _ALL_ROWS if wanted is None else wanted + _SPARE_ROWS
        while True:
            found = self._find(port, duck, values, asked)
            assert found.columns is not None
            width = len(found.columns) - self._added
            kept = self._lock(port, found.rows, width, wanted)
            # Rows that are already locked are locked again at no cost, and the others come after them.
            if wanted is None or len(kept) >= wanted or len(found.rows) < asked:
                break
            asked *= _GROWTH
        shown = [row[:width] for row in kept[offset:]]
        return Result(f"SELECT {len(shown)}", found.columns[:width], shown, len(shown))

    def _find(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any], asked: int) -> Result:
        if self._limit is not None:
            return run_query(self._template, port, duck, [*values, asked])
        return run_query(self._template, port, duck, values[: max(self._template.parameters, default=0)])

    def _lock(self, port: TransactionPort, rows: Sequence[Row], width: int, wanted: int | None) -> list[Row]:
        if not self._skips:
            for locked in self._locked:
                keys = [locked.key(row[width:]) for row in rows]
                port.writes.lock_rows(locked.table, keys, locked.strength, locked.policy)
            return list(rows)
        if len(self._locked) == 1 or wanted is None:
            return self._lock_free(port, rows, width, wanted)
        return self._lock_each(port, rows, width, wanted)

    def _lock_free(self, port: TransactionPort, rows: Sequence[Row], width: int, most: int | None) -> list[Row]:
        """Table by table: one check of the locks for all rows."""
        kept = list(rows)
        for locked in self._locked:
            keys = [locked.key(row[width:]) for row in kept]
            taken = port.writes.lock_rows(locked.table, keys, locked.strength, locked.policy, most)
            kept = [row for row, is_taken in zip(kept, taken, strict=True) if is_taken]
        return kept

    def _lock_each(self, port: TransactionPort, rows: Sequence[Row], width: int, most: int) -> list[Row]:
        """Row by row: only rows that are returned are locked."""
        kept: list[Row] = []
        for row in rows:
            if len(kept) >= most:
                break
            if all(self._lock_row(port, locked, row[width:]) for locked in self._locked):
                kept.append(row)
        return kept

    def _lock_row(self, port: TransactionPort, locked: LockedTable, added: Row) -> bool:
        return port.writes.lock_rows(locked.table, [locked.key(added)], locked.strength, locked.policy)[0]


def _checked(query: exp.Expr) -> exp.Select:
    if not isinstance(query, exp.Select):
        raise _refuse("UNION/INTERSECT/EXCEPT")
    for key, clause in _REFUSED.items():
        if query.args.get(key):
            raise _refuse(clause)
    for expression in query.expressions:
        if expression.find(exp.AggFunc, exp.Window):
            raise _refuse("aggregate or window functions")
    return query


def _refuse(what: str) -> errors.FeatureNotSupported:
    return errors.FeatureNotSupported(feature=f"FOR UPDATE / SHARE with {what}", instead="")


def _lock_tables(
    select: exp.Select, locks: Sequence[exp.Expr], port: TransactionPort
) -> tuple[list[LockedTable], list[exp.Expr]]:
    """The tables that each clause locks, and the key columns that the query must return."""
    sources = _sources(select)
    locked: list[LockedTable] = []
    added: list[exp.Expr] = []
    for lock in locks:
        for alias in [folded(node.this) for node in lock.expressions] or list(sources):
            source = sources.get(alias)
            if source is None:
                raise errors.UndefinedTable(name=alias)
            if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
                raise _refuse("a subquery or a function in FROM")
            if is_cte_reference(source):
                raise _refuse("a WITH query")
            target = read_target(exp.Table(**{k: v for k, v in source.args.items() if k != "joins"}))
            table = target.resolve(port)
            strength = _STRENGTHS[bool(lock.args.get("update")), bool(lock.args.get("key"))]
            locked.append(LockedTable(target, table, strength, _POLICIES[lock.args.get("wait")], len(added)))
            added += _key_columns(select, source, target, table)
    return locked, added


def _sources(select: exp.Select) -> dict[str, exp.Expr]:
    """The sources of the query, by their names in it."""
    from_ = select.args.get("from_")
    joins = select.args.get("joins") or []
    if any(join.side for join in joins):
        raise _refuse("an outer join")
    nodes = [*([from_.this] if from_ is not None else []), *(join.this for join in joins)]
    for node in list(nodes):
        nodes += [join.this for join in node.args.get("joins") or []]
    return {_name(node): node for node in nodes}


def _name(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is not None:
        return folded(alias.this)
    return folded(node.this) if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) else ""


def _key_columns(select: exp.Select, source: exp.Table, target: DmlTarget, table: Table) -> list[exp.Expr]:
    key = [table.column_by_id[id_] for id_ in table.primary.key]
    if not all(column.is_shown for column in key):
        if any(isinstance(e, exp.Star) or e.find(exp.Star) for e in select.expressions):
            _spell_out_star(select, target, table)
        source.meta[WITH_HIDDEN] = True
    return [exp.column(table.label(column), table=target.alias, quoted=True) for column in key]


def _spell_out_star(select: exp.Select, target: DmlTarget, table: Table) -> None:
    """A star would also return the hidden key."""
    if select.args.get("joins"):
        raise _refuse("* over several tables of which one has no primary key")
    spelled: list[exp.Expr] = []
    for node in select.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            spelled += [exp.column(c.name, table=target.alias, quoted=True) for c in table.visible_columns]
        else:
            spelled.append(node)
    select.set("expressions", spelled)


def _read_count(clauses: Sequence[exp.Expr], kind: type[exp.Expr]) -> Operand | None:
    """The number of a LIMIT or OFFSET."""
    for clause in clauses:
        if isinstance(clause, kind):
            operand = read_operand(clause.expression)
            if not isinstance(operand, Given | Argument):
                raise errors.FeatureNotSupported(feature="a computed LIMIT with SKIP LOCKED", instead="")
            return operand
        if not isinstance(clause, exp.Limit | exp.Offset):
            raise errors.FeatureNotSupported(feature="FETCH with SKIP LOCKED", instead="Use LIMIT.")
    return None


def _count(operand: Operand | None, values: Sequence[Any]) -> int | None:
    match operand:
        case Argument(number):
            value = values[number - 1]
        case Given(given):
            value = given
        case _:
            return None
    return None if value is None else int(value)
