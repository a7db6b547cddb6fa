"""Aggregates of a row that is not there: `rank(3) WITHIN GROUP (ORDER BY n)` is the place that a row with n = 3 would
have, which is counted from the rows that come before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.mapped.trees import call, number


def rank_hypothetical(tree: exp.Expr) -> exp.Expr:
    for group in list(tree.find_all(exp.WithinGroup)):
        make = _RANKS.get(type(group.this))
        if make is None:
            continue
        values, keys = group.this.expressions, group.expression.expressions
        if len(values) != len(keys):
            detail = f"function {type(group.this).sql_names()[0].lower()} with {len(values)} arguments does not exist"
            raise errors.UndefinedFunction(detail=f"{detail}: as many as there are keys are wanted")
        group.replace(exp.paren(make(keys, values)))
    return tree


def _before(keys: Sequence[exp.Ordered], values: Sequence[exp.Expr], ties: bool = False) -> exp.Expr:
    """Whether a row comes before one with these values; `ties`: or is equal to it."""
    key, value = keys[0], values[0]
    here, there = exp.paren(key.this.copy()), exp.paren(value.copy())
    is_sooner = (exp.GT if key.args.get("desc") else exp.LT)(this=here, expression=there)
    first, last = (here, there) if key.args.get("nulls_first") else (there, here)
    by_null = exp.And(this=_is_null(first), expression=exp.Not(this=_is_null(last)))
    sooner = exp.Or(this=exp.Coalesce(this=is_sooner, expressions=[exp.false()]), expression=exp.paren(by_null))
    if len(keys) == 1 and not ties:
        return exp.paren(sooner)
    rest = _before(keys[1:], values[1:], ties) if len(keys) > 1 else exp.true()
    equal = exp.NullSafeEQ(this=here.copy(), expression=there.copy())
    return exp.paren(exp.Or(this=exp.paren(sooner), expression=exp.paren(exp.And(this=equal, expression=rest))))


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node.copy(), expression=exp.null())


def _count(of: exp.Expr, condition: exp.Expr | None = None) -> exp.Expr:
    counted = exp.Count(this=of)
    return counted if condition is None else exp.Filter(this=counted, expression=exp.Where(this=condition))


def _rank(keys: Sequence[exp.Ordered], values: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Add(this=_count(exp.Star(), _before(keys, values)), expression=number(1))


def _dense_rank(keys: Sequence[exp.Ordered], values: Sequence[exp.Expr]) -> exp.Expr:
    rows = exp.Distinct(expressions=[call("row", *(key.this for key in keys))])
    return exp.Add(this=_count(rows, _before(keys, values)), expression=number(1))


def _percent_rank(keys: Sequence[exp.Ordered], values: Sequence[exp.Expr]) -> exp.Expr:
    before = exp.cast(_count(exp.Star(), _before(keys, values)), exp.DType.DOUBLE)
    share = exp.Div(this=before, expression=call("nullif", _count(exp.Star()), number(0)), typed=False)
    return exp.Coalesce(this=share, expressions=[number(0)])


def _cume_dist(keys: Sequence[exp.Ordered], values: Sequence[exp.Expr]) -> exp.Expr:
    upto = exp.Add(this=_count(exp.Star(), _before(keys, values, ties=True)), expression=number(1))
    rows = exp.Add(this=_count(exp.Star()), expression=number(1))
    return exp.Div(this=exp.cast(exp.paren(upto), exp.DType.DOUBLE), expression=exp.paren(rows), typed=False)


_RANKS: Final[dict[type[exp.Expr], Callable[[Sequence[exp.Ordered], Sequence[exp.Expr]], exp.Expr]]] = {
    exp.Rank: _rank,
    exp.DenseRank: _dense_rank,
    exp.PercentRank: _percent_rank,
    exp.CumeDist: _cume_dist,
}
