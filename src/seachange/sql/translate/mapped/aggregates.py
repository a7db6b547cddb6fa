"""Aggregates: JSON documents from the list of values that DuckDB collects, and arguments guarded by FILTER."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
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


_CONSTANTS: Final = (exp.Literal, exp.Parameter, exp.Null, exp.ByteString)


def join_by_values(tree: exp.Expr) -> exp.Expr:
    """string_agg with a delimiter that is computed for each row stands before the value of that row, but for the first
    row; DuckDB wants a constant."""
    for node in reversed(list(tree.find_all(exp.GroupConcat))):
        delimiter = node.args.get("separator")
        inner = delimiter
        while isinstance(inner, exp.Cast | exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Null):
            node.set("separator", exp.Literal.string(""))
        if isinstance(inner, _CONSTANTS) or delimiter is None:
            continue
        whole = _whole(node)
        ordered = node.this if isinstance(node.this, exp.Order) else None
        value = ordered.this if ordered is not None else node.this
        if isinstance(value, exp.Distinct) or isinstance(whole, exp.Window):
            raise errors.FeatureNotSupported(
                feature="string_agg with DISTINCT or OVER and a delimiter that is no constant",
                instead="Put the delimiter into the values.",
            )
        condition = whole.expression.this if isinstance(whole, exp.Filter) else None
        whole.replace(_joined(value, delimiter, ordered, condition))
    return tree


def _joined(value: exp.Expr, delimiter: exp.Expr, order: exp.Order | None, condition: exp.Expr | None) -> exp.Expr:
    text = exp.cast(delimiter.copy(), exp.DType.TEXT)
    before: exp.Expr = exp.Coalesce(this=text, expressions=[exp.Literal.string("")])
    pair = exp.DPipe(this=before, expression=exp.paren(value.copy()))

    def over(aggregate: exp.Expr, argument: exp.Expr) -> exp.Expr:
        if order is not None:
            argument, inside = order.copy(), argument
            argument.set("this", inside)
        aggregate.set("this", argument)
        given: exp.Expr = exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))
        if condition is not None:
            given = exp.And(this=exp.paren(given), expression=exp.paren(condition.copy()))
        return exp.Filter(this=aggregate, expression=exp.Where(this=given))

    whole = over(exp.GroupConcat(separator=exp.Literal.string("")), pair)
    first = over(exp.First(), before.copy())
    start = exp.Add(this=exp.Length(this=first), expression=exp.Literal.number(1))
    return exp.Substring(this=whole, start=start)
