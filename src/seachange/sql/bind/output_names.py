"""The names of a query's result columns, as PostgreSQL chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from sqlglot import exp

from seachange.sql.bind.calls import trim_name
from seachange.sql.bind.cast_types import TYPE_NAMES
from seachange.sql.bind.names import is_call, postgres_name

UNNAMED: Final = "?column?"
# Operators that sqlglot represents as functions.
_OPERATORS: Final = (
    exp.Connector,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.ArrayContainsAll,
    exp.ArrayContainedBy,
    exp.ArrayOverlaps,
    exp.JSONExtract,
    exp.JSONExtractScalar,
    exp.JSONBExtract,
    exp.JSONBExtractScalar,
    exp.JSONBContainsTopKey,
    exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys,
    exp.JSONBDeleteAtPath,
    exp.JSONBPathExists,
    exp.MatchAgainst,
    exp.StartsWith,
    exp.Pow,
    exp.Sqrt,
    exp.Cbrt,
    exp.Abs,
)
# They are named like what they contain.
_WRAPPERS: Final = (
    exp.Paren,
    exp.Collate,
    exp.Bracket,
    exp.Window,
    exp.Filter,
    exp.WithinGroup,
    exp.IgnoreNulls,
    exp.RespectNulls,
)


class _Strength(IntEnum):
    """A cast and CASE name a column only if what they contain does not."""

    NONE = 0
    WEAK = 1
    STRONG = 2


def output_names(tree: exp.Expr) -> tuple[str | None, ...] | None:
    """One name per projection, None for a star; None if there is no select list."""
    query: exp.Expr | None = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if isinstance(query, exp.Values):
        first = query.expressions[0] if query.expressions else None
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        return tuple(f"column{i}" for i in range(1, width + 1))
    if not isinstance(query, exp.Select):
        return None
    return tuple(output_name(projection) for projection in query.expressions)


def name_columns(tree: exp.Expr) -> exp.Expr:
    """Writes out the names of columns of subqueries in FROM and WITH, to which other names refer: DuckDB would choose
    its own."""
    for source in list(tree.find_all(exp.CTE, exp.Subquery, exp.Lateral, exp.Values)):
        alias = source.args.get("alias")
        is_source = isinstance(source, exp.CTE | exp.Lateral) or isinstance(source.parent, exp.From | exp.Join)
        if not is_source or (alias is not None and alias.columns):
            continue
        query = source if isinstance(source, exp.Values) else source.this
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if isinstance(query, exp.Select):
            query.set("expressions", [_aliased(item) for item in query.expressions])
        elif isinstance(query, exp.Values) and isinstance(alias, exp.TableAlias):
            columns = [exp.to_identifier(name, quoted=True) for name in output_names(query) or () if name]
            alias.set("columns", columns)
    return tree


def _aliased(item: exp.Expr) -> exp.Expr:
    name = output_name(item)
    if name is None or isinstance(item, exp.Alias | exp.Column):
        return item
    return exp.Alias(this=item, alias=exp.to_identifier(name, quoted=True))


def output_name(node: exp.Expr) -> str | None:
    """None for a star.

    >>> import sqlglot
    >>> [output_name(node) for node in sqlglot.parse_one("select 1::int8, a::text, a + 1", dialect="postgres").selects]
    ['int8', 'a', '?column?']
    """
    return None if node.is_star else _name(node)[0]


def _name(node: exp.Expr) -> tuple[str, _Strength]:
    match node:
        case exp.Alias() | exp.Column() | exp.Dot():
            return node.output_name or node.name, _Strength.STRONG
        case exp.Cast() if not is_call(node):
            inner, strength = _name(node.this)
            return (inner, strength) if strength is _Strength.STRONG else (_type_name(node.to), _Strength.WEAK)
        case exp.Case():
            default = node.args.get("default")
            inner, strength = _name(default) if default is not None else ("", _Strength.NONE)
            return (inner, strength) if strength is _Strength.STRONG else ("case", _Strength.WEAK)
        case exp.Subquery():
            found = output_names(node.this)
            return (found[0] or UNNAMED, _Strength.STRONG) if found else (UNNAMED, _Strength.NONE)
        case exp.AtTimeZone():
            return "timezone", _Strength.STRONG
        case exp.Overlaps():
            return "overlaps", _Strength.STRONG
        case exp.Interval():
            return "interval", _Strength.WEAK
        case exp.Array():
            return "array", _Strength.STRONG
        case exp.Tuple():
            return "row", _Strength.STRONG
        case exp.Trim():
            return trim_name(node), _Strength.STRONG
        case _ if is_call(node):
            return postgres_name(node), _Strength.STRONG
        case _ if isinstance(node, _WRAPPERS):
            return _name(node.this)
        case _ if isinstance(node, _OPERATORS) or not isinstance(node, exp.Func):
            return UNNAMED, _Strength.NONE
        case _:
            return postgres_name(node), _Strength.STRONG


def _type_name(type_: exp.DataType) -> str:
    if isinstance(type_, exp.ObjectIdentifier):
        return str(type_.this).lower()
    if type_.this is exp.DType.ARRAY and type_.expressions:
        return _type_name(type_.expressions[0])
    user = type_.args.get("kind")
    if isinstance(user, exp.Expr):
        last = user.expression if isinstance(user, exp.Dot) else user
        return str(last.name)
    return TYPE_NAMES.get(type_.this) or str(type_.sql("postgres")).lower().split("(")[0]


def apply_names(chosen: Sequence[str | None] | None, found: Sequence[str]) -> list[str]:
    """PostgreSQL's names where the text decides them: before the first star and after the last."""
    names = list(found)
    if chosen is None:
        return names
    stars = [i for i, name in enumerate(chosen) if name is None]
    before = chosen if not stars else chosen[: stars[0]]
    after = () if not stars else chosen[stars[-1] + 1 :]
    names[: len(before)] = [str(name) for name in before]
    if after:
        names[-len(after) :] = [str(name) for name in after]
    return names
