"""Long lists in a parsed statement: `x IN ($k)` becomes `x = ANY ($k)`, `VALUES ($k, $l)` a query over both lists, as
PostgreSQL evaluates them. The rows of INSERT ... VALUES stay one row of lists.

**Invariant:** a statement with a list in any other place is parsed as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from sqlglot import exp

from seachange.sql.text.long_lists import ListShape
from seachange.values.types import NUMERIC_PRECISION_MAX, TEXT, Kind, SqlType

# Key of `meta` of a parameter that stands for a long list: it is in a place where it may be.
LONG_LIST: Final = "long_list"

# Of the constants of columns.
_KINDS: Final = (None, int, str, bool, Decimal)

Lists = Mapping[int, ListShape]


def place_lists(tree: exp.Expr, lists: Lists) -> exp.Expr | None:
    """Takes ownership of the tree. None if the statement is to be parsed as it was written."""
    for values in list(tree.find_all(exp.Values)):
        placed = _place_rows(values, lists)
        tree = placed if values is tree else tree
    for test in list(tree.find_all(exp.In)):
        _place_list(test, lists)
    found = [node for node in tree.find_all(exp.Parameter) if _find(node, lists) is not None]
    return tree if all(node.meta_get(LONG_LIST) for node in found) else None


def rows_of_lists(tree: exp.Insert) -> exp.Tuple | None:
    """The one row of an INSERT that brings rows by lists."""
    values = tree.expression
    row = values.expressions[0] if isinstance(values, exp.Values) and len(values.expressions) == 1 else None
    return row if isinstance(row, exp.Tuple) and any(item.meta_get(LONG_LIST) for item in row.expressions) else None


def _find(node: exp.Expr, lists: Lists) -> ListShape | None:
    name = node.this.name if isinstance(node, exp.Parameter) and isinstance(node.this, exp.Literal) else ""
    return lists.get(int(name)) if name.isdigit() else None


def _listed(item: exp.Expr, lists: Lists) -> tuple[exp.Expr, ListShape] | None:
    """The list that an item or its cast stands for."""
    node: exp.Expr = item.this if isinstance(item, exp.Cast) else item
    found = _find(node, lists)
    return None if found is None else (node, found)


def _place_list(test: exp.In, lists: Lists) -> None:
    item = test.expressions[0] if len(test.expressions) == 1 else None
    listed = _listed(item, lists) if item is not None else None
    if item is None or listed is None or isinstance(test.this, exp.Tuple):
        return
    if listed[1].is_column or listed[1].kind not in (None, int, str):
        return
    test.replace(exp.EQ(this=test.this.copy(), expression=exp.Any(this=exp.Paren(this=_as_list(item, listed[0])))))


def _as_list(item: exp.Expr, parameter: exp.Expr) -> exp.Expr:
    """A cast of the elements is one of the list."""
    made = parameter.copy()
    made.meta[LONG_LIST] = True
    return exp.cast(made, _array(item.args["to"].copy())) if isinstance(item, exp.Cast) else made


def _array(element: exp.Expr) -> exp.DataType:
    return exp.DataType(this=exp.DType.ARRAY, expressions=[element], nested=True)


def _place_rows(values: exp.Values, lists: Lists) -> exp.Expr:
    row = values.expressions[0] if len(values.expressions) == 1 else None
    if not isinstance(row, exp.Tuple):
        return values
    if isinstance(values.parent, exp.Insert) and values.arg_key == "expression":
        for item in row.expressions:
            found = _find(item, lists)
            if found is not None and found.is_column:
                item.meta[LONG_LIST] = True
        return values
    if isinstance(values.parent, exp.SetOperation) or any(values.args.get(key) for key in ("order", "limit", "offset")):
        return values
    columns = list(_columns(row, lists))
    if len(columns) != len(row.expressions):
        return values
    query: exp.Expr = exp.Select(expressions=columns)
    alias = values.args.get("alias")
    if alias is not None:
        query = exp.Subquery(this=query, alias=alias.copy(), joins=values.args.get("joins"))
    return values.replace(query)


def _element(shape: ListShape) -> SqlType | None:
    if shape.digits is not None:
        return SqlType(Kind.NUMERIC, *shape.digits) if shape.digits[0] <= NUMERIC_PRECISION_MAX else None
    return TEXT if shape.kind is str else shape.type


def _columns(row: exp.Tuple, lists: Lists) -> Iterator[exp.Expr]:
    """The elements of the lists, side by side; nothing if something else stands among them."""
    listed = [_listed(item, lists) for item in row.expressions]
    if any(each is None or not each[1].is_column or each[1].kind not in _KINDS for each in listed):
        return
    for number, (item, found) in enumerate(zip(row.expressions, listed, strict=True), 1):
        assert found is not None
        parameter, each = found
        made = _as_list(item, parameter)
        element = _element(each)
        if each.kind is not None and not isinstance(item, exp.Cast):
            if element is None:
                return
            made = exp.cast(made, _array(exp.DataType.build(str(element), dialect="postgres")))
        yield exp.alias_(exp.Explode(this=made), f"column{number}")
