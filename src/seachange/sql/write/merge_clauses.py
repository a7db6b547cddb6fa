"""The clauses of MERGE: which are allowed, and what they may name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.compile.target import folded

_NOTHING: Final = "DO NOTHING"
_DELETE: Final = "DELETE"
_VERBS: Final[dict[type[exp.Expr], str]] = {exp.Insert: "INSERT", exp.Update: "UPDATE"}
# The actions on a matching row, and without one.
_ALLOWED: Final = {True: frozenset({"UPDATE", _DELETE, _NOTHING}), False: frozenset({"INSERT", _NOTHING})}


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
