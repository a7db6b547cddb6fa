"""Aggregates with FILTER: their arguments are computed only for the rows that pass the filter.

DuckDB computes the argument of an aggregate before it looks at FILTER, and so divides by the zeros that FILTER is there
to leave out.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# Aggregates whose argument is all that they take of a row.
_OF_ONE: Final = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.ArrayAgg, exp.Variance, exp.VariancePop)
_SPREADS: Final = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
# What fails for some values.
_FAILING: Final = (exp.Div, exp.Mod, exp.Sqrt, exp.Ln, exp.Log, exp.Pow, exp.Cast)


def guard_filtered(tree: exp.Expr) -> exp.Expr:
    for filtered in list(tree.find_all(exp.Filter)):
        argument = _argument(filtered.this)
        condition = filtered.expression.this
        # A query, or a function that gives something else each time, is not asked twice.
        if argument is None or argument.find(*_FAILING) is None or condition.find(exp.Query, exp.Anonymous, exp.Rand):
            continue
        argument.replace(exp.Case().when(condition.copy(), argument.copy()))
    return tree


def _argument(aggregate: exp.Expr) -> exp.Expr | None:
    if not isinstance(aggregate, (*_OF_ONE, *_SPREADS)):
        return None
    found = aggregate.this
    while isinstance(found, exp.Distinct | exp.Order):
        found = found.this if isinstance(found, exp.Order) else found.expressions[0]
    return found if isinstance(found, exp.Expr) else None
