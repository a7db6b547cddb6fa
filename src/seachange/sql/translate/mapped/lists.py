"""Function mappings: arrays."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.mapped.trees import Rewrite, arguments, call, number, our, whole_value
from seachange.storage.duck_functions import PREFIX


def _array_length(node: exp.Func) -> exp.Expr:
    return _of_first(node.expression, call("nullif", call("len", node.this), number(0)))


def _of_first(dimension: exp.Expr | None, found: exp.Expr) -> exp.Expr:
    """There is no other dimension."""
    known = whole_value(dimension)
    if dimension is None or known == 1:
        return found
    if known is not None:
        return exp.cast(exp.null(), exp.DType.INT)
    return exp.case().when(exp.EQ(this=exp.paren(dimension.copy()), expression=number(1)), found)


def _array_lower(node: exp.Func) -> exp.Expr:
    listed, *dimension = node.expressions
    found = exp.case().when(exp.GT(this=call("len", listed), expression=number(0)), number(1))
    return _of_first(dimension[0] if dimension else None, found)


def _trim_array(node: exp.Func) -> exp.Expr:
    listed, count = node.expressions
    kept = exp.Sub(this=call("len", listed), expression=exp.paren(count.copy()))
    return call("list_slice", listed, number(1), kept)


def _array_position(node: exp.Func) -> exp.Expr:
    start = node.args.get("zero_based")
    if start is None:
        return node
    return _search("position_from", exp.Anonymous(expressions=[node.this.copy(), node.expression.copy(), start.copy()]))


def _search(name: str, node: exp.Func) -> exp.Expr:
    given = node.expressions if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    of_query = "_of_query" if any(each.find(exp.Query) for each in given) else ""
    return call(PREFIX + name + of_query, *given)


def _array_fill(node: exp.Func) -> exp.Expr:
    value, sizes, *bounds = node.expressions
    if bounds or (isinstance(sizes, exp.Array) and len(sizes.expressions) != 1):
        raise errors.FeatureNotSupported(feature="array_fill of several dimensions or other bounds", instead="")
    return call(PREFIX + "filled", value, call("list_extract", sizes, number(1)))


def _to_text(node: exp.Func) -> exp.Expr:
    if node.expression.find(exp.Column, exp.Query) is not None:
        raise errors.FeatureNotSupported(
            feature="array_to_string with a computed delimiter", instead="Use string_agg over unnest."
        )
    return node


def _sample(node: exp.Func) -> exp.Expr:
    listed, count = arguments(node)
    return call(PREFIX + "sampled", listed, count)


REWRITES: Final[dict[str, Rewrite]] = {
    "array_concat": our("joined"),
    "array_dims": our("dimensions"),
    "array_position": _array_position,
    "array_fill": _array_fill,
    "array_lower": _array_lower,
    "array_ndims": _array_lower,
    "array_positions": partial(_search, "positions"),
    # DuckDB's leaves NULLs out, and everything if NULL is to go.
    "array_remove": partial(_search, "removed"),
    "array_replace": partial(_search, "replaced"),
    "array_sample": _sample,
    "array_shuffle": our("shuffled"),
    "array_size": _array_length,
    "array_to_string": _to_text,
    "trim_array": _trim_array,
}
