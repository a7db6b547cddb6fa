"""Function mappings: numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.duck_errors import ARGUMENT_PHRASES
from seachange.sql.translate.mapped.trees import Rewrite, arguments, call, number, our, spread_list, whole_value
from seachange.storage.duck_functions import COMPLAIN, PREFIX
from seachange.values.types import NUMERIC_DEFAULT


def _guarded(node: exp.Func, key: str, wrong: Callable[[exp.Expr], exp.Expr], phrase: str) -> exp.Expr:
    """Puts a check before an argument: DuckDB answers NaN where there is no value."""
    argument = node.args[key]
    known = whole_value(argument)
    if known is not None and known > 0 and wrong is not _is_no_sine:
        return node
    complaint = call(COMPLAIN, exp.Literal.string(phrase))
    node.set(key, exp.case().when(wrong(argument.copy()), complaint).else_(argument.copy()))
    return node


def _is_negative(argument: exp.Expr) -> exp.Expr:
    return exp.LT(this=exp.paren(argument), expression=number(0))


def _is_not_positive(argument: exp.Expr) -> exp.Expr:
    return exp.LTE(this=exp.paren(argument), expression=number(0))


def _is_no_sine(argument: exp.Expr) -> exp.Expr:
    return exp.GT(this=call("abs", argument), expression=number(1))


def _sqrt(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_negative, ARGUMENT_PHRASES["sqrt"])


def _ln(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_not_positive, ARGUMENT_PHRASES["ln"])


def _log(node: exp.Func) -> exp.Expr:
    return _guarded(
        node, "expression" if node.args.get("expression") else "this", _is_not_positive, ARGUMENT_PHRASES["ln"]
    )


def _arc(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_no_sine, ARGUMENT_PHRASES["arc"])


def _power(node: exp.Func) -> exp.Expr:
    """Zero has no negative powers, and a negative number none that are no whole numbers: DuckDB answers infinity and
    NaN."""
    base, exponent = node.this, node.expression
    known = whole_value(exponent)
    base_known = whole_value(base)
    if (known is not None and known >= 0) or (base_known is not None and base_known > 0):
        return node
    is_zero = exp.EQ(this=exp.paren(base.copy()), expression=number(0))
    is_broken = exp.NEQ(this=call("trunc", exponent), expression=exp.paren(exponent.copy()))
    checked = exp.case()
    for phrase, one, other in (
        ("power", is_zero, _is_negative(exponent.copy())),
        ("complex", _is_negative(base.copy()), is_broken),
    ):
        complaint = call(COMPLAIN, exp.Literal.string(ARGUMENT_PHRASES[phrase]))
        checked = checked.when(exp.And(this=one, expression=other), complaint)
    node.set("this", checked.else_(base.copy()))
    return node


def _round(node: exp.Func) -> exp.Expr:
    """Numbers in binary are rounded to the nearest even one."""
    argument = node.this
    _refuse_computed_digits(node)
    is_binary = isinstance(argument, exp.Cast) and argument.to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT)
    if is_binary and node.args.get("decimals") is None:
        return call("round_even", argument, number(0))
    return node


def _trunc(node: exp.Func) -> exp.Expr:
    _refuse_computed_digits(node)
    return node


def _refuse_computed_digits(node: exp.Func) -> None:
    digits = node.args.get("decimals")
    if digits is not None and digits.find(exp.Column, exp.Query) is not None:
        raise errors.FeatureNotSupported(
            feature=f"{node.sql_name().lower()} to a computed number of digits", instead="Write the number."
        )


def _count_nulls(node: exp.Func) -> exp.Expr:
    listed = spread_list(node.expressions)
    if listed is not None:
        return call(PREFIX + "count_nulls", listed)
    return _sum_of(exp.Is(this=exp.paren(a), expression=exp.null()) for a in arguments(node))


def _count_values(node: exp.Func) -> exp.Expr:
    listed = spread_list(node.expressions)
    if listed is not None:
        return call(PREFIX + "count_values", listed)
    return _sum_of(exp.Not(this=exp.Is(this=exp.paren(a), expression=exp.null())) for a in arguments(node))


def _sum_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    total: exp.Expr | None = None
    for condition in conditions:
        one = exp.cast(exp.paren(condition), exp.DType.INT)
        total = one if total is None else exp.Add(this=total, expression=one)
    return exp.paren(total) if total is not None else number(0)


def _trim_scale(node: exp.Func) -> exp.Expr:
    """Without digits of its own, a numeric shows none that it does not need."""
    return exp.cast(node.expressions[0].copy(), exp.DataType.build("DECIMAL({},{})".format(*NUMERIC_DEFAULT)))


def _width_bucket(node: exp.Func) -> exp.Expr:
    """The bucket of a value among so many of the same width, or among those that a list bounds."""
    if node.args.get("threshold") is not None:
        return call(PREFIX + "bucket", node.this, node.args["threshold"])
    value, low, high, count = (
        exp.paren(node.args[key].copy()) for key in ("this", "min_value", "max_value", "num_buckets")
    )
    reach = exp.cast(exp.paren(exp.Sub(this=high, expression=low)), exp.DType.DOUBLE)
    along = exp.Mul(this=exp.paren(exp.Sub(this=value, expression=low.copy())), expression=count)
    bucket = exp.Add(this=call("floor", exp.Div(this=exp.paren(along), expression=reach)), expression=number(1))
    held = call("least", call("greatest", bucket, number(0)), exp.Add(this=count.copy(), expression=number(1)))
    # The smallest of several is one that is no NULL.
    known = exp.Not(this=exp.Is(this=bucket.copy(), expression=exp.null()))
    return exp.cast(exp.case().when(known, held), exp.DType.INT)


def _random_normal(node: exp.Func) -> exp.Expr:
    given = arguments(node)
    mean, deviation = [*given, *(number(0), number(1))[len(given) :]]
    return call(PREFIX + "random_normal", mean, deviation)


def divide_whole(node: exp.IntDiv) -> exp.Expr:
    """div: without what is left over."""
    rest = exp.Mod(this=exp.paren(node.this.copy()), expression=exp.paren(node.expression.copy()))
    reached = exp.paren(exp.Sub(this=exp.paren(node.this.copy()), expression=rest))
    return call("trunc", exp.Div(this=reached, expression=exp.paren(node.expression.copy()), typed=False))


_IN_DEGREES: Final = ("acosd", "asind", "atan2d", "atand", "cosd", "cotd", "sind", "tand")

REWRITES: Final[dict[str, Rewrite]] = {
    **{name: our(name) for name in (*_IN_DEGREES, "erf", "erfc")},
    "min_scale": our("min_scale", of_text=True),
    "scale": our("scale", of_text=True),
    "trim_scale": _trim_scale,
    "width_bucket": _width_bucket,
    "acos": _arc,
    "asin": _arc,
    "ln": _ln,
    "log": _log,
    "num_nonnulls": _count_values,
    "num_nulls": _count_nulls,
    "power": _power,
    "random_normal": _random_normal,
    "round": _round,
    "trunc": _trunc,
    "sqrt": _sqrt,
}
