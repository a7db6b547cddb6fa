"""Function mappings: dates and times."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.mapped.trees import IS_MOMENT, Rewrite, arguments, call, our
from seachange.storage.duck_functions import PREFIX

_FRACTIONS: Final = {"SECOND": 1_000_000, "SECONDS": 1_000_000, "MILLISECOND": 1_000, "MILLISECONDS": 1_000}


def _extract(node: exp.Func) -> exp.Expr:
    """Seconds have a fraction."""
    divisor = _FRACTIONS.get(node.this.name.upper())
    if divisor is None or not isinstance(node, exp.Extract):
        zoned = isinstance(node.expression, exp.Cast) and node.expression.to.is_type(exp.DType.TIMESTAMPTZ)
        # sqlglot writes no extract of what it sees to be zoned.
        return call("date_part", exp.Literal.string(node.this.name.lower()), node.expression) if zoned else node
    micros = exp.Extract(this=exp.Var(this="MICROSECOND"), expression=node.expression.copy())
    return exp.paren(exp.Div(this=micros, expression=exp.Literal.number(f"{divisor}.0"), typed=False))


def _to_date(node: exp.Func) -> exp.Expr:
    return exp.cast(call(PREFIX + "read_moment", *arguments(node)), exp.DType.DATE)


def _to_timestamp(node: exp.Func) -> exp.Expr:
    if len(node.expressions) == 1:
        return call("to_timestamp", exp.cast(node.expressions[0].copy(), exp.DType.DOUBLE))
    return exp.cast(call(PREFIX + "read_moment", *arguments(node)), exp.DType.TIMESTAMPTZ)


def _justify(node: exp.Func) -> exp.Expr:
    made = call(PREFIX + function_name(node), exp.cast(node.this.copy(), exp.DType.TEXT))
    return exp.cast(made, exp.DataType.build("INTERVAL", dialect="duckdb"))


_TIME_OF_DAY: Final = "Dy Mon DD HH24:MI:SS.US YYYY UTC"
_YEAR: Final = "1 year"
_EARLY: Final = frozenset({"century", "millennium"})


def _truncate(node: exp.Func) -> exp.Expr:
    """A century begins with the year 1: in DuckDB with the year 0. A date is truncated as a moment with a zone."""
    zone, moment = node.args.get("zone"), node.this
    if zone is not None:
        moment = exp.AtTimeZone(this=exp.cast(moment.copy(), exp.DType.TIMESTAMPTZ), zone=zone.copy())
    unit = node.args["unit"].name.lower()
    if unit in _EARLY:
        year = exp.cast(exp.Literal.string(_YEAR), exp.DataType.build("INTERVAL", dialect="duckdb"))
        earlier = exp.Sub(this=exp.paren(moment.copy()), expression=year)
        found: exp.Expr = exp.Add(this=_truncated(unit, earlier), expression=year.copy())
    else:
        found = _truncated(unit, moment)
    if zone is not None:
        return exp.AtTimeZone(this=exp.paren(found), zone=zone.copy())
    return exp.paren(found) if unit in _EARLY else found


def _truncated(unit: str, moment: exp.Expr) -> exp.Expr:
    name = "date_trunc" if moment.meta_get(IS_MOMENT) else PREFIX + "truncated"
    return call(name, exp.Literal.string(unit), moment)


def _at_zone(node: exp.Func) -> exp.Expr:
    zone, moment = arguments(node)
    return exp.AtTimeZone(this=exp.paren(moment), zone=zone)


def _shift(node: exp.Func) -> exp.Expr:
    """date_add and date_subtract: by the days of a zone, if one is given."""
    moment, span, *zone = arguments(node)
    kind = exp.Add if function_name(node) == "pg_date_add" else exp.Sub
    start: exp.Expr = exp.cast(moment, exp.DType.TIMESTAMPTZ)
    if zone:
        start = exp.AtTimeZone(this=start, zone=zone[0])
    shifted = kind(this=exp.paren(start), expression=exp.cast(span, exp.DType.INTERVAL))
    return exp.AtTimeZone(this=exp.paren(shifted), zone=zone[0].copy()) if zone else exp.paren(shifted)


# The functions of DuckDB for the parts of make_interval, in PostgreSQL's order.
_PARTS: Final = {
    "year": "to_years",
    "month": "to_months",
    "week": "to_weeks",
    "day": "to_days",
    "hour": "to_hours",
    "minute": "to_minutes",
    "second": "to_seconds",
}


def _make_interval(node: exp.Func) -> exp.Expr:
    total: exp.Expr = exp.cast(exp.Literal.string("0 seconds"), exp.DataType.build("INTERVAL", dialect="duckdb"))
    for key, name in _PARTS.items():
        given = node.args.get(key)
        if given is None:
            continue
        value = given.expression if isinstance(given, exp.Kwarg) else given
        type_ = exp.DType.DOUBLE if key == "second" else exp.DType.INT
        total = exp.Add(this=total, expression=call(name, exp.cast(value.copy(), type_)))
    return exp.paren(total)


def _time_of_day(node: exp.Func) -> exp.Expr:
    now = exp.Anonymous(this="clock_timestamp")
    return exp.Anonymous(this=PREFIX + "to_char", expressions=[now, exp.Literal.string(_TIME_OF_DAY)])


def translate_overlaps(node: exp.Overlaps) -> exp.Expr:
    """Of periods that are given by two moments, or by one and a length."""
    sides = [side.unnest() for side in (node.this, node.expression)]
    if not all(isinstance(side, exp.Tuple) and len(side.expressions) == 2 for side in sides):
        raise errors.UndefinedFunction(detail="OVERLAPS is of two pairs of moments")
    return call(PREFIX + "overlaps", *sides[0].expressions, *sides[1].expressions)


REWRITES: Final[dict[str, Rewrite]] = {
    "extract": _extract,
    "make_interval": _make_interval,
    **dict.fromkeys(("justify_days", "justify_hours", "justify_interval"), _justify),
    "pg_date_add": _shift,
    "pg_date_subtract": _shift,
    "pg_to_char": our("to_char"),
    "timeofday": _time_of_day,
    "pg_to_date": _to_date,
    "pg_to_number": our("read_number"),
    "timestamp_trunc": _truncate,
    "timezone": _at_zone,
    "pg_to_timestamp": _to_timestamp,
}
