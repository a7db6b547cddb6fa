"""Functions of arrays."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.mapped.trees import Rewrite, arguments, call, number, whole_value
from seachange.storage.duck_functions import PREFIX


def append_item(node: exp.DPipe) -> exp.Expr | None:
    """A list with an item before or behind it, where the text tells that one side is a list and the other none."""
    left, right = _is_list(node.this), _is_list(node.expression)
    if left and right:
        # DuckDB's operator gives NULL where one of them is.
        return call("list_concat", node.this, node.expression)
    if left and right is False:
        return call("list_append", node.this, node.expression)
    if right and left is False:
        return call("list_prepend", node.this, node.expression)
    return None


def _is_list(node: exp.Expr) -> bool | None:
    """None if it cannot be told."""
    inner = node.unnest()
    if isinstance(inner, exp.Array) or (isinstance(inner, exp.Cast) and inner.to.is_type(exp.DType.ARRAY)):
        return True
    return False if isinstance(inner, exp.Literal | exp.Boolean) and not getattr(inner, "is_string", False) else None


def _array_length(node: exp.Func) -> exp.Expr:
    if (whole_value(node.expression) or 1) != 1:
        return exp.cast(exp.null(), exp.DType.INT)
    return call("nullif", call("len", node.this), number(0))


def _array_cat(node: exp.Func) -> exp.Expr:
    return call("list_concat", node.this, *node.expressions)


def _array_lower(node: exp.Func) -> exp.Expr:
    length = call("len", node.expressions[0])
    return exp.case().when(exp.GT(this=length, expression=number(0)), number(1))


def _array_ndims(node: exp.Func) -> exp.Expr:
    return _array_lower(node)


def _trim_array(node: exp.Func) -> exp.Expr:
    listed, count = node.expressions
    kept = exp.Sub(this=call("len", listed), expression=exp.paren(count.copy()))
    return call("list_slice", listed, number(1), kept)


def _array_positions(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "positions", *arguments(node))


def _array_replace(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "replaced", *arguments(node))


def _array_position(node: exp.Func) -> exp.Expr:
    start = node.args.get("zero_based")
    if start is None:
        return node
    return call(PREFIX + "position_from", node.this, node.expression, start)


def _array_dims(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "dimensions", node.expressions[0])


def _array_fill(node: exp.Func) -> exp.Expr:
    value, sizes, *bounds = node.expressions
    if bounds or (isinstance(sizes, exp.Array) and len(sizes.expressions) != 1):
        raise errors.FeatureNotSupported(feature="array_fill of several dimensions or other bounds", instead="")
    return call(PREFIX + "filled", value, call("list_extract", sizes, number(1)))


REWRITES: Final[dict[str, Rewrite]] = {
    "array_concat": _array_cat,
    "array_dims": _array_dims,
    "array_position": _array_position,
    "array_fill": _array_fill,
    "array_lower": _array_lower,
    "array_ndims": _array_ndims,
    "array_positions": _array_positions,
    "array_replace": _array_replace,
    "array_size": _array_length,
    "trim_array": _trim_array,
}
