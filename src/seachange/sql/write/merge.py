"""MERGE: one query finds, for each source row, the row that it matches and the clause to execute; the results are
passed to an UPDATE, DELETE or INSERT for each clause.

**Invariant:** a row is matched by at most one source row, and foreign key actions run after all clauses; so no clause
sees what another has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.target import folded, read_target
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import check_argument_count
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.plan import CompilePlan, StatementPlan, is_same_table
from seachange.sql.query.query import SharedRows, count_parameters
from seachange.sql.text.scope import WITH_HIDDEN
from seachange.sql.text.tree import OVERRIDING
from seachange.sql.write.returning import given_table

_FOUND: Final = "merged"
_KEY: Final = "merge key "
_CLAUSE: Final = "merge clause"
_NOTHING: Final = "DO NOTHING"
_DELETE: Final = "DELETE"
_VERBS: Final[dict[type[exp.Expr], str]] = {exp.Insert: "INSERT", exp.Update: "UPDATE"}
# The actions on a matching row, and without one.
_ALLOWED: Final = {True: frozenset({"UPDATE", _DELETE, _NOTHING}), False: frozenset({"INSERT", _NOTHING})}


@dataclass(frozen=True, slots=True)
class _Clause:
    """`count` is the number of its own parameters."""

    plan: StatementPlan
    count: int


class Merge:
    def __init__(self, tree: exp.Merge, port: TransactionPort, compile_plan: CompilePlan) -> None:
        self._target = read_target(tree.this)
        self._table = self._target.resolve(port)
        self._keys = _key_names(self._table)
        source = tree.args["using"]
        self._source = _source_name(source, self._target.alias)
        whens = tree.args["whens"].expressions
        _refuse_returning(tree)
        check_clauses(whens)
        self._found = SharedRows(self._find_query(tree, source, whens))
        # Positions of the clauses that change existing rows.
        self._changing = {place for place, when in enumerate(whens) if when.args["matched"] and not is_nothing(when)}
        statements = [self._statement(place, when, tree.this) for place, when in enumerate(whens)]
        made = [statement for statement in statements if statement is not None]
        self._clauses = [_Clause(compile_plan(each, port), count_parameters(each)) for each in made]
        self._expected = max(self._found.count, *(clause.count for clause in self._clauses), 0)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table) and all(
            clause.plan.is_current(port) for clause in self._clauses
        )

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        port.locks.begin_write(self._table)
        found = self._found.read(port, duck, values)
        self._refuse_second_change(found)
        port.statement.handed[_FOUND] = found
        try:
            with port.writes.together():
                results = [clause.plan.run(port, duck, values[: clause.count]) for clause in self._clauses]
        finally:
            port.statement.handed.clear()
        count = sum(result.count for result in results)
        return Result(f"MERGE {count}", count=count)

    def _find_query(self, tree: exp.Merge, source: exp.Expr, whens: Sequence[exp.When]) -> exp.Select:
        """The source rows with the keys that they match, and the position of the first clause that applies."""
        alias = self._target.alias
        is_met = exp.Not(this=exp.Is(this=_column(self._keys[0], alias), expression=exp.null()))
        chosen = exp.Case()
        for place, when in enumerate(whens):
            holds: exp.Expr = is_met.copy() if when.args["matched"] else exp.Not(this=exp.paren(is_met.copy()))
            condition = when.args.get("condition")
            if condition is not None:
                asked = condition.copy()
                if not when.args["matched"]:
                    asked = only_of_source(asked, self._source, alias)
                holds = exp.And(this=holds, expression=exp.paren(asked))
            chosen = chosen.when(holds, exp.Literal.number(place))
        keys = [exp.alias_(_column(key, alias), f"{_KEY}{n}", quoted=True) for n, key in enumerate(self._keys)]
        every = exp.Column(this=exp.Star(), table=exp.to_identifier(self._source, quoted=True))
        query = exp.Select(
            expressions=[every, *keys, exp.alias_(chosen, _CLAUSE, quoted=True)], from_=exp.From(this=source.copy())
        )
        joined = tree.this.copy()
        joined.meta[WITH_HIDDEN] = any(self._table.column_by_id[id_].hidden for id_ in self._table.primary.key)
        query.set("joins", [exp.Join(this=joined, side="LEFT", on=tree.args["on"].copy())])
        if tree.args.get("with_") is not None:
            query.set("with_", tree.args["with_"].copy())
        return query

    def _statement(self, place: int, when: exp.When, target: exp.Expr) -> exp.Expr | None:
        """The statement of a clause, for the rows that it was chosen for."""
        if is_nothing(when):
            return None
        rows = given_table(_FOUND, self._source)
        is_chosen: exp.Expr = exp.EQ(this=_column(_CLAUSE, self._source), expression=exp.Literal.number(place))
        action = when.args["then"]
        if isinstance(action, exp.Insert):
            every = [exp.to_identifier(column.name, quoted=True) for column in self._table.visible_columns]
            return _insert(action, target, every, rows, is_chosen)
        for n, key in enumerate(self._keys):
            meets = exp.EQ(this=_column(key, self._target.alias), expression=_column(f"{_KEY}{n}", self._source))
            is_chosen = exp.And(this=is_chosen, expression=meets)
        where = exp.Where(this=is_chosen)
        if isinstance(action, exp.Update):
            sets = [each.copy() for each in action.expressions]
            return exp.Update(this=target.copy(), expressions=sets, from_=exp.From(this=rows), where=where)
        return exp.Delete(this=target.copy(), using=[rows], where=where)

    def _refuse_second_change(self, found: pa.Table) -> None:
        names = [f"{_KEY}{n}" for n in range(len(self._keys))]
        changed = [
            tuple(row[name] for name in names)
            for row in found.select([*names, _CLAUSE]).to_pylist()
            if row[_CLAUSE] in self._changing
        ]
        if len(set(changed)) < len(changed):
            raise errors.CardinalityViolation(detail="MERGE command cannot affect row a second time")


def _column(name: str, table: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _source_name(source: exp.Expr, target: str) -> str:
    alias = source.args.get("alias")
    is_join = isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table)
    if is_join or source.args.get("joins") or (alias is None and not isinstance(source, exp.Table)):
        instead = "Use a table, or a query in parentheses with a name: USING (SELECT ...) AS source."
        raise errors.FeatureNotSupported(
            feature="a join, or a query without a name, as the source of MERGE", instead=instead
        )
    name = folded(alias.this if alias is not None else source.this)
    if name == target:
        raise errors.DuplicateAlias(detail=f'name "{name}" specified more than once')
    return name


def _key_names(table: Table) -> list[str]:
    """Those of the hidden key of a table without a primary key."""
    return [table.column_by_id[id_].name for id_ in table.primary.key]


def _refuse_returning(tree: exp.Merge) -> None:
    if tree.args.get("returning") is not None:
        instead = "Use INSERT ... ON CONFLICT DO UPDATE, UPDATE or DELETE, which support it."
        raise errors.FeatureNotSupported(feature="RETURNING of MERGE", instead=instead)


def _insert(
    action: exp.Insert, target: exp.Expr, every: list[exp.Identifier], rows: exp.Expr, is_chosen: exp.Expr
) -> exp.Insert:
    """A value that is DEFAULT counts as not given."""
    values = [value.copy() for value in action.expression.expressions]
    is_listed = action.this is not None
    named = [column.this.copy() for column in action.this.expressions] if is_listed else every[: len(values)]
    if len(named) != len(values):
        detail = "expressions than target columns" if len(values) > len(named) else "target columns than expressions"
        raise errors.SyntaxProblem(detail=f"INSERT has more {detail}")
    defaults = {place for place, value in enumerate(values) if isinstance(value, exp.Var)}
    given = [value for place, value in enumerate(values) if place not in defaults]
    if not given:
        raise errors.FeatureNotSupported(feature="INSERT of nothing but defaults in MERGE", instead="Give a value.")
    into = target.copy()
    into.set("alias", None)
    into = exp.Schema(this=into, expressions=[name for place, name in enumerate(named) if place not in defaults])
    query = exp.Select(expressions=given, from_=exp.From(this=rows), where=exp.Where(this=is_chosen))
    made = exp.Insert(this=into, expression=query)
    if action.meta_get(OVERRIDING) is not None:
        made.meta[OVERRIDING] = action.meta[OVERRIDING]
    return made


def is_nothing(when: exp.When) -> bool:
    return _verb(when) == _NOTHING


def check_clauses(whens: Sequence[exp.When]) -> None:
    unconditional: set[bool] = set()
    for when in whens:
        is_matched = bool(when.args["matched"])
        if when.args.get("source"):
            raise errors.FeatureNotSupported(feature="WHEN NOT MATCHED BY SOURCE", instead="Use DELETE or UPDATE.")
        verb = _verb(when)
        if verb not in _ALLOWED[is_matched]:
            raise errors.SyntaxProblem(detail=f'at or near "{verb.lower()}" in WHEN {_named(is_matched)}')
        if is_matched in unconditional:
            raise errors.SyntaxProblem(detail="unreachable WHEN clause specified after unconditional WHEN clause")
        if when.args.get("condition") is None:
            unconditional.add(is_matched)
        _check_action(when.args["then"])


def _verb(when: exp.When) -> str:
    action = when.args["then"]
    return _VERBS.get(type(action)) or action.name.upper()


def _named(is_matched: bool) -> str:
    return "MATCHED" if is_matched else "NOT MATCHED"


def _check_action(action: exp.Expr) -> None:
    """A subquery would see the changes of earlier clauses."""
    if not isinstance(action, exp.Insert | exp.Update):
        return
    if action.find(exp.Query) is not None:
        raise errors.FeatureNotSupported(feature="a subquery in a clause of MERGE", instead="Put it into USING.")
    if isinstance(action, exp.Insert):
        if action.expression is None:
            raise errors.FeatureNotSupported(feature="INSERT DEFAULT VALUES in MERGE", instead="Name a column.")
        if any(value.is_star for value in action.expression.expressions):
            raise errors.FeatureNotSupported(feature="* in VALUES of MERGE", instead="Name the columns.")


def only_of_source(condition: exp.Expr, source: str, target: str) -> exp.Expr:
    """The condition of an unmatched row: its names belong to the source alone. Inside a query an unqualified name may
    be that query's own."""
    for column in list(condition.find_all(exp.Column)):
        qualifier = column.args.get("table")
        if qualifier is not None and folded(qualifier) == target and not _is_hidden(column, target):
            raise errors.UnresolvedTable(detail=f'invalid reference to FROM-clause entry for table "{target}"')
        if qualifier is None and column.find_ancestor(exp.Query) is None:
            column.set("table", exp.to_identifier(source, quoted=True))
    return condition


def _is_hidden(column: exp.Column, name: str) -> bool:
    """Whether an enclosing query has a table of that name."""
    query = column.find_ancestor(exp.Query)
    return query is not None and any(table.alias_or_name == name for table in query.find_all(exp.Table))
