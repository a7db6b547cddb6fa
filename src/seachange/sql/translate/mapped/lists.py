"""Function mappings: arrays."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.mapped.trees import ITEM_CALL, Rewrite, arguments, call, number, our, whole_value
from seachange.storage.duck_functions import PREFIX

# Functions that give lists, by the names that sqlglot gives them; all others, and operators, give none.
_LISTS: Final = frozenset(
    {
        *("array", "array_agg", "array_append", "array_concat", "array_fill", "array_positions", "array_prepend"),
        *(
            "array_remove",
            "array_replace",
            "array_sample",
            "array_shuffle",
            "regexp_match",
            "regexp_split",
            "regexp_split_to_array",
            "string_to_array",
        ),
        *("trim_array", "list_append", "list_prepend", "list_slice", "regexp_split_to_array"),
        *(PREFIX + name for name in ("filled", "joined", "positions", "removed", "replaced", "subscripts", "turned")),
    }
)


def append_item(node: exp.DPipe) -> exp.Expr | None:
    """A list with an item before or behind it, where the text tells that one side is a list; of a column the catalog
    tells what it is."""
    left, right = _is_list(node.this), _is_list(node.expression)
    if left and right:
        # DuckDB's operator gives NULL where one of them is.
        return call(PREFIX + "joined", node.this, node.expression)
    if left:
        if right is None and deciding_column(node.expression) is not None:
            return call(PREFIX + "joined", node.this, call(ITEM_CALL, node.expression))
        return call("list_append", node.this, node.expression) if right is False else None
    if right:
        if left is None and deciding_column(node.this) is not None:
            return call(PREFIX + "joined", call(ITEM_CALL, node.this), node.expression)
        return call("list_prepend", node.this, node.expression) if left is False else None
    return None


def deciding_column(node: exp.Expr) -> exp.Column | None:
    """A column that is a list if the expression gives one."""
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        return inner
    return next((found for part in _choices(inner) if (found := deciding_column(part)) is not None), None)


def _choices(node: exp.Expr) -> list[exp.Expr]:
    """What an expression gives one of."""
    if isinstance(node, exp.Case):
        parts = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.Coalesce | exp.Nullif | exp.Greatest | exp.Least):
        parts = [node.this, node.args.get("expression"), *node.expressions]
    else:
        parts = []
    return [part for part in parts if part is not None and not isinstance(part, exp.Null)]


def _declaring(column: exp.Column) -> exp.Expr | None:
    """What a column of a WITH query is, in its first part: of one that is recursive the others follow that."""
    query = column.find_ancestor(exp.Select)
    clause = column.find_ancestor(exp.With)
    root = column.root()
    clauses = [c for c in (clause, root.args.get("with_")) if c is not None]
    if query is None or not clauses:
        return None
    tables = [t for t in query.find_all(exp.Table) if t.find_ancestor(exp.Select) is query]
    named = {t.name.lower() for t in tables if not t.db and column.table in ("", t.alias_or_name)}
    ctes = [c for each in clauses for c in each.expressions if c.alias.lower() in named]
    for cte in ctes:
        first = cte.this
        while isinstance(first, exp.SetOperation):
            first = first.this.unnest()
        items = _items(first)
        names = [c.name for c in cte.args["alias"].columns] or [item.alias_or_name for item in items]
        if column.name in names and names.index(column.name) < len(items):
            found = items[names.index(column.name)].unalias()
            return None if isinstance(found, exp.Column) else found
    return None


def _items(query: exp.Expr) -> list[exp.Expr]:
    source = query.args.get("from_")
    if source is not None and isinstance(source.this, exp.Values) and len(query.expressions) == 1 and query.is_star:
        query = source.this
    if isinstance(query, exp.Values):
        first = query.expressions[0]
        return list(first.expressions) if isinstance(first, exp.Tuple) else [first]
    return list(query.expressions) if isinstance(query, exp.Select) else []


def _is_list(node: exp.Expr) -> bool | None:
    """None if it is unknown."""
    inner = node.unnest()
    match inner:
        case exp.Array():
            return True
        case exp.Cast():
            return bool(inner.to.is_type(exp.DType.ARRAY))
        case exp.Bracket():
            return any(isinstance(index, exp.Slice) for index in inner.expressions)
        case exp.DPipe():
            return _is_list(inner.this) or _is_list(inner.expression) or None
        case exp.Literal():
            return None if inner.is_string else False
        case exp.Column():
            declared = _declaring(inner)
            return None if declared is None else _is_list(declared)
        case exp.Dot():
            return None
        case exp.Boolean() | exp.Unary() | exp.Binary():
            return False
        case _ if choices := _choices(inner):
            kinds = {_is_list(part) for part in choices} - {None}
            return kinds.pop() if len(kinds) == 1 else None
        case exp.Select() if len(inner.expressions) == 1:
            return _is_list(inner.expressions[0].unalias())
        case exp.Func():
            return function_name(inner) in _LISTS
        case _:
            return None


def _array_length(node: exp.Func) -> exp.Expr:
    if (whole_value(node.expression) or 1) != 1:
        return exp.cast(exp.null(), exp.DType.INT)
    return call("nullif", call("len", node.this), number(0))


def _array_lower(node: exp.Func) -> exp.Expr:
    length = call("len", node.expressions[0])
    return exp.case().when(exp.GT(this=length, expression=number(0)), number(1))


def _trim_array(node: exp.Func) -> exp.Expr:
    listed, count = node.expressions
    kept = exp.Sub(this=call("len", listed), expression=exp.paren(count.copy()))
    return call("list_slice", listed, number(1), kept)


def _array_position(node: exp.Func) -> exp.Expr:
    start = node.args.get("zero_based")
    if start is None:
        return node
    return call(PREFIX + "position_from", node.this, node.expression, start)


def _array_fill(node: exp.Func) -> exp.Expr:
    value, sizes, *bounds = node.expressions
    if bounds or (isinstance(sizes, exp.Array) and len(sizes.expressions) != 1):
        raise errors.FeatureNotSupported(feature="array_fill of several dimensions or other bounds", instead="")
    return call(PREFIX + "filled", value, call("list_extract", sizes, number(1)))


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
    "array_positions": our("positions"),
    # DuckDB's leaves NULLs out, and everything if NULL is to go.
    "array_remove": our("removed"),
    "array_replace": our("replaced"),
    "array_sample": _sample,
    "array_shuffle": our("shuffled"),
    "array_size": _array_length,
    "trim_array": _trim_array,
}
