"""Assignment of Python values to SQL types."""

import datetime as dt
import math
from decimal import Decimal
from uuid import UUID

import pytest

from seachange.errors import Error
from seachange.values.coercion import coerce
from seachange.values.types import Kind, SqlType

UTC = dt.UTC
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))
NUMERIC = SqlType(Kind.NUMERIC, 6, 2)
VARCHAR = SqlType(Kind.VARCHAR, length=3)


@pytest.mark.parametrize(
    ("type_", "value", "stored"),
    [
        (SqlType(Kind.BOOLEAN), "yes", True),
        (SqlType(Kind.BOOLEAN), " F ", False),
        (SqlType(Kind.SMALLINT), 32767, 32767),
        (SqlType(Kind.INTEGER), " -5 ", -5),
        (SqlType(Kind.INTEGER), 2.5, 2),
        (SqlType(Kind.INTEGER), Decimal("2.5"), 3),
        (SqlType(Kind.INTEGER), Decimal("-2.5"), -3),
        (SqlType(Kind.DOUBLE), "1e3", 1000.0),
        (SqlType(Kind.DOUBLE), "-Infinity", -math.inf),
        (SqlType(Kind.DOUBLE), 1, 1.0),
        (SqlType(Kind.REAL), 0.1, 0.10000000149011612),
        (NUMERIC, "1.005", Decimal("1.01")),
        (NUMERIC, 1.1, Decimal("1.10")),
        (NUMERIC, -0.001, Decimal("0.00")),
        (SqlType(Kind.NUMERIC, 38, 18), "12345678901234567890.5", Decimal("12345678901234567890.5")),
        (SqlType(Kind.TEXT), 5, "5"),
        (SqlType(Kind.TEXT), True, "true"),
        (SqlType(Kind.TEXT), 1.0, "1"),
        (SqlType(Kind.TEXT), dt.datetime(2026, 1, 2, 3, 4, 5, 93600), "2026-01-02 03:04:05.0936"),
        (SqlType(Kind.TEXT), dt.datetime(2026, 1, 2, 3, 4, 5, 500000, PLUS_TWO), "2026-01-02 01:04:05.5+00"),
        (SqlType(Kind.TEXT), dt.time(3, 4, 5, 120), "03:04:05.00012"),
        (VARCHAR, "abc  ", "abc"),
        (SqlType(Kind.BYTEA), r"\x00ff", b"\x00\xff"),
        (SqlType(Kind.BYTEA), r"a\\b\001", b"a\\b\x01"),
        (SqlType(Kind.BYTEA), bytearray(b"x"), b"x"),
        (SqlType(Kind.DATE), "2024-2-9", dt.date(2024, 2, 9)),
        (SqlType(Kind.DATE), dt.datetime(2024, 2, 9, 5), dt.date(2024, 2, 9)),
        (SqlType(Kind.TIME), "01:02:03.5", dt.time(1, 2, 3, 500_000)),
        (SqlType(Kind.TIMESTAMP), "2024-02-09 01:02:03+02", dt.datetime(2024, 2, 9, 1, 2, 3)),
        (SqlType(Kind.TIMESTAMP), dt.datetime(2024, 2, 9, 1, tzinfo=PLUS_TWO), dt.datetime(2024, 2, 8, 23)),
        (SqlType(Kind.TIMESTAMPTZ), "2024-02-09", dt.datetime(2024, 2, 9, tzinfo=UTC)),
        (SqlType(Kind.TIMESTAMPTZ), dt.date(2024, 2, 9), dt.datetime(2024, 2, 9, tzinfo=UTC)),
        (SqlType(Kind.UUID), "00000000-0000-0000-0000-000000000005", UUID(int=5)),
    ],
)
def test_value_is_coerced_to_its_stored_form(type_, value, stored):
    found = coerce(type_, value)
    assert found == stored
    assert type(found) is type(stored)


@pytest.mark.parametrize("kind", list(Kind))
def test_null_stays_null(kind):
    element = SqlType(Kind.TEXT) if kind is Kind.ARRAY else None
    assert coerce(SqlType(kind, 10, 2, element=element), None) is None


def test_numeric_has_its_scale():
    assert str(coerce(NUMERIC, 1)) == "1.00"
    assert str(coerce(NUMERIC, "-0.001")) == "0.00"


@pytest.mark.parametrize(
    ("type_", "value", "code"),
    [
        (SqlType(Kind.BOOLEAN), "maybe", "22P02"),
        (SqlType(Kind.BOOLEAN), 1, "42804"),
        (SqlType(Kind.INTEGER), "1.5", "22P02"),
        (SqlType(Kind.INTEGER), "x", "22P02"),
        (SqlType(Kind.INTEGER), True, "42804"),
        (SqlType(Kind.INTEGER), 2**31, "22003"),
        (SqlType(Kind.BIGINT), str(2**63), "22003"),
        (SqlType(Kind.SMALLINT), math.nan, "22003"),
        (SqlType(Kind.DOUBLE), "1e999", "22003"),
        (SqlType(Kind.DOUBLE), "1,5", "22P02"),
        (SqlType(Kind.REAL), 1e300, "22003"),
        (NUMERIC, 10_000, "22003"),
        (NUMERIC, "9999.995", "22003"),
        (NUMERIC, Decimal("NaN"), "22003"),
        (VARCHAR, "abcd", "22001"),
        (SqlType(Kind.TEXT), "a\x00b", "22021"),
        (SqlType(Kind.TEXT), b"x", "42804"),
        (SqlType(Kind.BYTEA), r"\xzz", "22023"),
        (SqlType(Kind.BYTEA), "a\\", "22P02"),
        (SqlType(Kind.DATE), "soon", "22007"),
        (SqlType(Kind.DATE), "2024-13-01", "22008"),
        (SqlType(Kind.TIME), "25:00", "22008"),
        (SqlType(Kind.TIMESTAMP), 5, "42804"),
        (SqlType(Kind.UUID), "x", "22P02"),
        (SqlType(Kind.UUID), 5, "42804"),
    ],
)
def test_invalid_value_is_rejected_with_its_code(type_, value, code):
    with pytest.raises(Error) as caught:
        coerce(type_, value)
    assert caught.value.sqlstate == code
