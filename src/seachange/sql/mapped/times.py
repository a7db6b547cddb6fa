"""Functions of dates and times."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.guard import function_name
from seachange.sql.mapped.trees import Rewrite, arguments, call
from seachange.storage.duck_functions import PREFIX

_FRACTIONS: Final = {"SECOND": 1_000_000, "SECONDS": 1_000_000, "MILLISECOND": 1_000, "MILLISECONDS": 1_000}


def _extract(node: exp.Func) -> exp.Expr:
    """Seconds have a fraction."""
    divisor = _FRACTIONS.get(node.this.name.upper())
    if divisor is None or not isinstance(node, exp.Extract):
        return node
    micros = exp.Extract(this=exp.Var(this="MICROSECOND"), expression=node.expression.copy())
    return exp.paren(exp.Div(this=micros, expression=exp.Literal.number(f"{divisor}.0"), typed=False))


def _to_char(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "to_char", *arguments(node))


def _to_date(node: exp.Func) -> exp.Expr:
    return exp.cast(call(PREFIX + "read_moment", *arguments(node)), exp.DType.DATE)


def _to_timestamp(node: exp.Func) -> exp.Expr:
    if len(node.expressions) == 1:
        return call("to_timestamp", exp.cast(node.expressions[0].copy(), exp.DType.DOUBLE))
    return exp.cast(call(PREFIX + "read_moment", *arguments(node)), exp.DType.TIMESTAMPTZ)


def _justify(node: exp.Func) -> exp.Expr:
    made = call(PREFIX + function_name(node), exp.cast(node.this.copy(), exp.DType.TEXT))
    return exp.cast(made, exp.DataType.build("INTERVAL", dialect="duckdb"))


REWRITES: Final[dict[str, Rewrite]] = {
    "extract": _extract,
    **dict.fromkeys(("justify_days", "justify_hours", "justify_interval"), _justify),
    "pg_to_char": _to_char,
    "pg_to_date": _to_date,
    "pg_to_timestamp": _to_timestamp,
}
