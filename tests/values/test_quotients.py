"""Quotients of numerics: what is not exact is rounded as PostgreSQL rounds, and what does not fit is refused."""

from decimal import Context, Decimal

import pytest

from seachange import errors
from seachange.values.quotients import divide, multiply, show_quotient

SCALE = 21
WIDE = Context(prec=60)


def quotient(one: str, other: str) -> str:
    (dividend, behind), (divisor, divisor_behind) = taken_apart(one), taken_apart(other)
    found = divide(dividend, divisor, behind, divisor_behind, SCALE)
    return f"{show_quotient(Decimal(found).scaleb(-SCALE, WIDE)):f}"


def taken_apart(text: str) -> tuple[int, int]:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction), len(fraction)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("1.0", "3", "0.33333333333333333333"),
        ("2", "3.0", "0.66666666666666666667"),
        ("-2", "3.0", "-0.66666666666666666667"),
        ("10", "4.0", "2.5000000000000000"),
        ("100000.0", "3", "33333.333333333333"),
        ("1", "1.0", "1.00000000000000000000"),
        ("0", "3.0", "0.00000000000000000000"),
        ("12345678901234567", "2", "6172839450617283.5000"),
        # As many as an operand has, if these are more.
        ("123456.1234567890123", "2.0", "61728.0617283945062"),
    ],
)
def test_quotients_have_the_digits_that_postgresql_shows(one: str, other: str, found: str) -> None:
    assert quotient(one, other) == found


def test_halves_go_away_from_zero() -> None:
    assert [multiply(number, 1, 1, 0, 0) for number in (5, 15, -5, -15, 4)] == [1, 2, -1, -2, 0]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(errors.NumericValueOutOfRange):
        divide(10**17, 1, 0, 0, SCALE)
    assert divide(10**17 - 1, 1, 0, 0, SCALE) == (10**17 - 1) * 10**SCALE
    with pytest.raises(errors.DivisionByZero):
        divide(1, 0, 0, 0, SCALE)
