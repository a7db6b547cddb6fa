"""Common-type resolution for set operations and IN (subquery). DuckDB may cut off digits of numerics there
(`arithmetic.py` decides when)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seachange.sql.translate.arithmetic import is_calculated
from seachange.sql.translate.derived import resolve_columns


@dataclass(frozen=True, slots=True, eq=False)
class CommonType:
    """Each of the `holders` has a value: a query in its list at that place. `combined` is what they are together."""

    combined: exp.Expr
    holders: Sequence[exp.Expr]
    place: int


def find_meetings(tree: exp.Expr) -> list[CommonType]:
    found = [*_compounds(tree), *_searches(tree)]
    return [meeting for meeting in found if is_calculated(meeting.combined)]


def join_meeting(meeting: CommonType, name: str) -> None:
    """Has a function of that name make the values of one type."""
    for holder in meeting.holders:
        item = holder.expressions[meeting.place] if isinstance(holder, exp.Select) else holder.this
        inner = item.unalias()
        if isinstance(inner, exp.Null):
            continue
        made = exp.Anonymous(this=name, expressions=[bare(inner).copy()])
        # A column keeps its name.
        alias = item.alias or (inner.name if isinstance(inner, exp.Column) and isinstance(holder, exp.Select) else "")
        item.replace(exp.alias_(made, alias, quoted=True) if alias else made)


def bare(node: exp.Expr) -> exp.Expr:
    """Without parentheses, but for those of a subquery."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _compounds(tree: exp.Expr) -> Iterator[CommonType]:
    """The columns of the operands of a set operation."""
    for compound in tree.find_all(exp.SetOperation):
        if not isinstance(compound.parent, exp.SetOperation):
            leaves = _listing(compound)
            for place, items in enumerate(zip(*(leaf.expressions for leaf in leaves), strict=True)):
                yield CommonType(_together(items), leaves, place)


def _listing(query: exp.Expr) -> list[exp.Select]:
    """The queries that a query is made of, where each lists its columns: none otherwise."""
    leaves = list(_leaves(query))
    found = [leaf for leaf in leaves if isinstance(leaf, exp.Select) and not leaf.is_star]
    return found if len(found) == len(leaves) and len({len(leaf.expressions) for leaf in found}) == 1 else []


def _leaves(query: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(query, exp.SetOperation):
        yield from _leaves(query.this)
        yield from _leaves(query.expression)
    elif isinstance(query, exp.Subquery):
        yield from _leaves(query.this)
    else:
        yield query


def _searches(tree: exp.Expr) -> Iterator[CommonType]:
    """IN of a query that has one column."""
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        leaves = _listing(query) if query is not None and not isinstance(node.this, exp.Tuple) else []
        if leaves and len(leaves[0].expressions) == 1:
            yield CommonType(_together([node.this, *(leaf.expressions[0] for leaf in leaves)]), [node, *leaves], 0)


def _together(items: Sequence[exp.Expr]) -> exp.Expr:
    combined = [resolve_columns(item.unalias()) for item in items]
    return exp.Coalesce(this=combined[0], expressions=combined[1:])
