"""Places of nodes in the text: names, constants and calls know theirs; all else follows from what it contains."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.errors.places import ErrorPlace

_START, _END = "start", "end"
# Written behind their first operand, like binary operators.
_INFIX: Final = (exp.Cast, exp.In, exp.Between)


def place_of(node: exp.Expr) -> ErrorPlace | None:
    """Where an expression begins."""
    starts = [each.meta[_START] for each in node.walk() if each.meta_get(_START) is not None]
    return ErrorPlace(min(starts)) if starts else None


def place_of_operator(node: exp.Expr) -> ErrorPlace | None:
    """Behind the left operand; before the operand of a prefix."""
    left = node.this
    if not isinstance(left, exp.Expr) or node.meta_get(_START) is not None:
        return place_of(node)
    if not isinstance(node, _INFIX) and "expression" not in node.arg_types:
        first = place_of(left)
        return ErrorPlace(first.offset, side=-1) if first is not None else None
    ends = [each.meta[_END] for each in left.walk() if each.meta_get(_END) is not None]
    return ErrorPlace(max(ends) + 1, side=1) if ends else None
