"""Builders of small trees, for the function mappings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sqlglot import exp

from seachange.storage.duck_functions import PREFIX

Rewrite = Callable[[exp.Func], exp.Expr]

# The meta entry of a node that gives a document.
IS_JSON: Final = "json"

# That of one that gives bytes.
IS_BYTES: Final = "bytes"

# That of one that gives a timestamp, which is truncated as it is.
IS_MOMENT: Final = "moment"

# What functions of ours that stand for one of PostgreSQL, with the same arguments, are called there.
FUNCTION_NAMES: Final = {
    "format": "format",
    "hex": "to_hex",
    "initcap": "initcap",
    "joined": "array_cat",
    "json_length": "jsonb_array_length",
    "json_set": "jsonb_set",
    "json_strip_nulls": "jsonb_strip_nulls",
    "json_typeof": "jsonb_typeof",
    "normalize": "normalize",
    "overlaps": "overlaps",
    "read_number": "to_number",
    "removed": "array_remove",
    "replaced": "array_replace",
    "to_char": "to_char",
    "truncated": "date_trunc",
}


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def number(value: float) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def whole_value(node: exp.Expr | None) -> int | None:
    """The value of a literal that is a whole number."""
    if isinstance(node, exp.Neg):
        inner = whole_value(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return int(node.name) if is_number and node is not None else None


def text_value(node: exp.Expr | None) -> str | None:
    """The value of a text literal, with or without a cast to text, as PostgreSQL prints it in definitions."""
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.TEXT:
        node = node.this
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def spread_list(values: Sequence[exp.Expr]) -> exp.Expr | None:
    """The list whose items are the last arguments: VARIADIC."""
    return values[-1].this if values and isinstance(values[-1], exp.Variadic) else None


def arguments(node: exp.Func) -> list[exp.Expr]:
    return [argument.copy() for argument in node.expressions]


def our(name: str, of_text: bool = False) -> Rewrite:
    """A function of ours with the same arguments, or with the text of the first one."""
    return partial(_call_ours, PREFIX + name, of_text)


def _call_ours(name: str, of_text: bool, node: exp.Func) -> exp.Expr:
    if of_text:
        return call(name, exp.cast(node.expressions[0].copy(), exp.DType.TEXT))
    # sqlglot has nodes with named arguments for some functions.
    return call(name, *(node.expressions if isinstance(node, exp.Anonymous) else node.iter_expressions()))
