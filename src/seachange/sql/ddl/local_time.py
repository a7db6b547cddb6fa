"""Changes of a column's type in a session with a time zone of its own.

Whoever writes a row during the change, and the job, compute its value in UTC. So what PostgreSQL would take from the
session is put into the expression: casts between moments and local times name the zone.

**Invariant:** in another zone than UTC nothing is made of a moment that would depend on it: what cannot be told is
refused, before anything is published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import sqlglot
from sqlglot import exp

from seachange import errors
from seachange.model.coercion import coerce
from seachange.model.descriptor import Column, Table
from seachange.model.enums import quote_text
from seachange.model.statements import AlterAction, AlterColumnType, ExpressionDefinition
from seachange.model.timezone import UTC, session_zone
from seachange.model.types import Kind, SqlType, from_duckdb
from seachange.model.values import format_canonical

# An assignment from the one kind to the other, around the value, by a time zone.
_LOCAL: Final[dict[tuple[Kind | None, Kind | None], tuple[str, str]]] = {
    (Kind.TIMESTAMP, Kind.TIMESTAMPTZ): ("(TIMEZONE({zone}, ", "))"),
    (Kind.DATE, Kind.TIMESTAMPTZ): ("(TIMEZONE({zone}, CAST(", " AS TIMESTAMP)))"),
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP): ("(TIMEZONE({zone}, ", "))"),
    (Kind.TIMESTAMPTZ, Kind.DATE): ("(CAST(TIMEZONE({zone}, ", ") AS DATE))"),
    (Kind.TIMESTAMPTZ, Kind.TIME): ("(CAST(TIMEZONE({zone}, ", ") AS TIME))"),
}
_TIMES: Final = {
    exp.DType.TIMESTAMPTZ: Kind.TIMESTAMPTZ,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: Kind.TIMESTAMP,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIME: Kind.TIME,
}
_MOMENT: Final = SqlType(Kind.TIMESTAMPTZ)
_MADE_LOCALLY: Final = "make_timestamptz"
_GAP: Final = re.compile(r'"gap ([0-9]+)"')


def localize(action: AlterAction, table: Table) -> AlterAction:
    """The action as it has to be computed in UTC."""
    if session_zone() == UTC or not isinstance(action, AlterColumnType):
        return action
    known, using = table.column_by_name, action.using
    # What is not there is for others to say.
    if not {action.name, *(using.columns if using is not None else ())} <= set(known):
        return action
    # A type that somebody created is no time.
    target = action.type.kind if isinstance(action.type, SqlType) else None
    if using is None:
        return _localize_assignment(action, known[action.name].type.kind, target)
    kinds = [known[name].type.kind for name in using.columns]
    return replace(action, using=_localize_expression(action.name, using, kinds, target))


def check_local(column: Column, given: str) -> None:
    """Of an expression whose type DuckDB has told: its assignment to the column must not depend on the zone."""
    found = from_duckdb(given)
    if session_zone() != UTC and found is not None and _depends(found.kind, column.type.kind):
        raise _refusal(column.name)


def _depends(given: Kind, target: Kind | None) -> bool:
    return (given, target) in _LOCAL or (given is Kind.TIMESTAMPTZ and target is not given)


def _localize_assignment(action: AlterColumnType, given: Kind, target: Kind | None) -> AlterAction:
    around = _LOCAL.get((given, target))
    if around is not None:
        pieces = tuple(piece.format(zone=quote_text(session_zone())) for piece in around)
        return replace(action, using=ExpressionDefinition(pieces, (action.name,)))
    if _depends(given, target):
        raise _refusal(action.name)
    return action


def _localize_expression(
    name: str, using: ExpressionDefinition, kinds: list[Kind], target: Kind | None
) -> ExpressionDefinition:
    gaps = {f"gap {place}": kind for place, kind in enumerate(kinds)}
    text = using.pieces[0] + "".join(f'"gap {i}"{piece}' for i, piece in enumerate(using.pieces[1:]))
    tree = sqlglot.parse_one(text, dialect="duckdb")
    before = tree.sql(dialect="duckdb")
    # From the inside out: what is cast may have been a cast itself.
    for cast in [node for node in reversed(list(tree.walk())) if isinstance(node, exp.Cast)]:
        kind = _TIMES.get(cast.to.this)
        if kind is not None:
            cast.replace(_cast(cast, kind, gaps, name))
    _check_moments(tree, gaps, name)
    around = _LOCAL.get((_kind_of(tree, gaps), target))
    if around is not None:
        tree = _wrap(tree, around)
    after = tree.sql(dialect="duckdb")
    if after == before:
        return using
    parts = _GAP.split(after)
    return replace(using, pieces=tuple(parts[0::2]), columns=tuple(using.columns[int(i)] for i in parts[1::2]))


def _cast(cast: exp.Cast, target: Kind, gaps: Mapping[str, Kind], name: str) -> exp.Expr:
    value: exp.Expr = cast.this.unnest()
    given = _kind_of(value, gaps)
    if target is Kind.TIMESTAMPTZ and isinstance(value, exp.Literal) and value.is_string:
        moment = format_canonical(_MOMENT, coerce(_MOMENT, value.this))
        return exp.cast(exp.Literal.string(moment), "TIMESTAMPTZ", dialect="duckdb")
    around = _LOCAL.get((given, target))
    if around is None and target is Kind.TIMESTAMPTZ and given is not target:
        raise _refusal(name)
    return cast if around is None else _wrap(value, around)


def _wrap(value: exp.Expr, around: tuple[str, str]) -> exp.Expr:
    before, after = (piece.format(zone=quote_text(session_zone())) for piece in around)
    return sqlglot.parse_one(f"{before}{value.sql(dialect='duckdb')}{after}", dialect="duckdb")


def _check_moments(tree: exp.Expr, gaps: Mapping[str, Kind], name: str) -> None:
    """Moments are given, asked for, or told in a zone that is named, and nothing else is made of them."""
    for node in tree.walk():
        if isinstance(node, exp.Func) and node.name.lower() == _MADE_LOCALLY:
            raise _refusal(name)
        if isinstance(node, exp.Paren) or _kind_of(node, gaps) is not Kind.TIMESTAMPTZ:
            continue
        user = node.parent
        while isinstance(user, exp.Paren):
            user = user.parent
        is_given = user is None or _kind_of(user, gaps) is Kind.TIMESTAMPTZ
        is_epoch = isinstance(user, exp.Extract) and user.this.name.upper() == "EPOCH"
        if not (is_given or is_epoch or isinstance(user, exp.Is) or _told_in_zone(user) is not None):
            raise _refusal(name)


def _kind_of(node: exp.Expr, gaps: Mapping[str, Kind]) -> Kind | None:
    """Where it can be told from the text that a value is a time of some kind; None where it cannot."""
    told = _told_in_zone(node)
    if told is not None:
        given = _kind_of(told, gaps)
        return Kind.TIMESTAMP if given is Kind.TIMESTAMPTZ else Kind.TIMESTAMPTZ
    match node:
        case exp.Paren():
            return _kind_of(node.this, gaps)
        case exp.Column():
            return gaps.get(node.name)
        case exp.Cast():
            return _TIMES.get(node.to.this)
        case exp.UnixToTime():
            return Kind.TIMESTAMPTZ
        case exp.Coalesce():
            kinds = {_kind_of(value, gaps) for value in (node.this, *node.expressions)}
            return kinds.pop() if len(kinds) == 1 else None
        case _:
            return None


def _told_in_zone(node: exp.Expr | None) -> exp.Expr | None:
    """What AT TIME ZONE stands behind."""
    told: exp.Expr | None = None
    match node:
        case exp.AtTimeZone():
            told = node.this
        case exp.Anonymous(this=str() as function, expressions=[_, value]) if function.upper() == "TIMEZONE":
            told = value
        case _:
            pass
    return told


def _refusal(name: str) -> errors.FeatureNotSupported:
    return errors.FeatureNotSupported(
        feature=f"converting column {name} by what depends on the time zone, in time zone {session_zone()},",
        instead="Say of which zone the time is with AT TIME ZONE, or SET timezone = 'UTC' first.",
    )
