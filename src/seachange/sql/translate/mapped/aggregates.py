"""Aggregates: JSON documents from the list of values that DuckDB collects, and arguments guarded by FILTER."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.bind.names import function_name
from seachange.sql.translate.mapped.documents import as_document
from seachange.sql.translate.mapped.trees import call
from seachange.storage.duck_functions import PREFIX

# By the names that sqlglot gives them: what makes the document of a list.
_ARRAYS: Final = {"j_s_o_n_array_agg": "to_array", "json_agg": "to_array", "jsonb_agg": "to_jsonb"}
_OBJECTS: Final = {
    "j_s_o_n_object_agg": ("json_gathered", "to_json"),
    "j_s_o_n_b_object_agg": ("jsonb_gathered", "to_jsonb"),
}
# Aggregates whose argument is all that they take of a row.
_OF_ONE: Final = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.ArrayAgg, exp.Variance, exp.VariancePop)
_SPREADS: Final = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
# What fails for some values.
_FAILING: Final = (exp.Div, exp.Mod, exp.Sqrt, exp.Ln, exp.Log, exp.Pow, exp.Cast)


def gather_documents(tree: exp.Expr) -> exp.Expr:
    # From the inside out; the root is no call.
    for node in reversed(list(tree.find_all(exp.Func))):
        name = function_name(node)
        if name in _ARRAYS:
            (value,) = _parts(node)
            _whole(node).replace(as_document(call(PREFIX + _ARRAYS[name], _gathered(node, value))))
        elif name in _OBJECTS:
            key, value = _parts(node)
            # What both are ordered by stands behind the second.
            ordered = value.copy() if isinstance(value, exp.Order) else None
            text: exp.Expr = exp.cast(key.copy(), exp.DType.TEXT)
            if ordered is not None:
                ordered.set("this", text)
            made, written = _OBJECTS[name]
            items = call(PREFIX + written, _gathered(node, value))
            _whole(node).replace(as_document(call(PREFIX + made, _gathered(node, ordered or text), items)))
    return tree


def _parts(node: exp.Func) -> list[exp.Expr]:
    if node.expressions:
        return list(node.expressions)
    return [part for part in (node.this, node.args.get("expression")) if part is not None]


def _whole(node: exp.Expr) -> exp.Expr:
    """With FILTER and OVER."""
    while isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        node = node.parent
    return node


def _gathered(node: exp.Func, value: exp.Expr) -> exp.Expr:
    """The list of a value over the rows that the aggregate is about."""
    listed: exp.Expr = exp.ArrayAgg(this=value.copy())
    inner: exp.Expr = node
    while isinstance(inner.parent, exp.Filter | exp.Window) and inner.arg_key == "this":
        inner = inner.parent
        around = inner.copy()
        around.set("this", listed)
        listed = around
    return listed


def guard_filtered(tree: exp.Expr) -> exp.Expr:
    """Aggregates with FILTER: their arguments are computed only for the rows that pass the filter.

    DuckDB computes the argument of an aggregate before it looks at FILTER, and so divides by the zeros that FILTER is
    there to leave out.
    """
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
