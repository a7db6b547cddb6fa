"""Casts that DuckDB does differently from PostgreSQL; literals are converted here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.storage.duck import IN_UNITS
from seachange.storage.duck_functions import PREFIX
from seachange.values.array_text import parse_array
from seachange.values.coercion import coerce
from seachange.values.digits import count_digits, plain_number
from seachange.values.interval import canonical_interval, parse_interval
from seachange.values.types import (
    MOMENT_DIGITS_MAX,
    NAME_BYTES_MAX,
    NUMERIC_DEFAULT,
    NUMERIC_PRECISION_MAX,
    Kind,
    SqlType,
)

_DType = exp.DType
_MOMENTS: Final = (_DType.DATE, _DType.TIMESTAMP, _DType.TIMESTAMPTZ, _DType.TIMESTAMPNTZ)
_SECONDS: Final = (_DType.TIMESTAMP, _DType.TIMESTAMPTZ, _DType.TIMESTAMPNTZ, _DType.TIME, _DType.INTERVAL)
_NUMBERS: Final = (_DType.DECIMAL, _DType.DOUBLE, _DType.FLOAT)
_BINARY: Final = (_DType.DOUBLE, _DType.FLOAT)
_BYTEA: Final = SqlType(Kind.BYTEA)
_ENDLESS: Final = frozenset({"infinity", "-infinity", "+infinity", "inf", "-inf"})

# The meta entry of a cast to numeric in a recursive query: what it begins with gets values of more digits.
WIDE: Final = "wide"


def translate_casts(tree: exp.Expr) -> exp.Expr:
    for literal in list(tree.find_all(exp.Literal)):
        if not literal.is_string and "e" in literal.name.lower():
            _write_out(literal)
    # From the inside out: what is replaced is copied with all that is in it.
    for cast in reversed(list(tree.find_all(exp.Cast))):
        for types, translate in _TRANSLATIONS:
            if cast.to.is_type(*types):
                digits = _second_digits(cast)
                translated = translate(cast)
                if digits is not None:
                    unit = exp.Literal.number(10 ** (MOMENT_DIGITS_MAX - digits))
                    translated = exp.Anonymous(this=IN_UNITS, expressions=[translated.copy(), unit])
                if translated is not cast:
                    cast.replace(translated)
                break
    for listed in tree.find_all(exp.Array):
        if any(isinstance(item.unnest(), exp.Array) for item in listed.expressions):
            raise _several_dimensions()
    for interval in list(tree.find_all(exp.Interval)):
        if isinstance(interval.this, exp.Literal):
            interval.replace(_interval_of(_interval_words(interval)))
    return tree


def _second_digits(cast: exp.Cast) -> int | None:
    """How many digits behind the second are left, if not all; DuckDB's own type for that is another."""
    if not cast.to.is_type(*_SECONDS) or not cast.to.expressions:
        return None
    digits = int(cast.to.expressions[0].name)
    cast.set("to", exp.DataType(this=cast.to.this))
    return digits if digits < MOMENT_DIGITS_MAX else None


def _write_out(literal: exp.Literal) -> None:
    """A number with an exponent is a numeric, for DuckDB a double."""
    above, number = literal.parent, plain_number(literal.name)
    if number is not None and not (isinstance(above, exp.Cast) and above.to.is_type(*_NUMBERS)):
        type_ = exp.DataType.build("DECIMAL({},{})".format(*count_digits(number)))
        literal.replace(exp.cast(exp.Literal.number(f"{number:f}"), type_))


def _literal(cast: exp.Cast) -> str | None:
    given = cast.this.unnest()
    return str(given.name) if isinstance(given, exp.Literal) and given.is_string else None


def _numeric(cast: exp.Cast) -> exp.Expr:
    text = _literal(cast)
    if text is not None and text.strip().lower() in (*_ENDLESS, "nan"):
        raise errors.FeatureNotSupported(feature=f"{text.strip()} as a numeric", instead="Use NULL or a double.")
    if not cast.to.expressions:
        within = cast.find_ancestor(exp.With)
        begins = within is not None and bool(within.args.get("recursive"))
        cast.meta[WIDE] = begins
        number = None if begins else _plain_number(cast)
        if number is not None:
            cast.set("this", exp.Literal.string(f"{number:f}"))
        digits = NUMERIC_DEFAULT if number is None else count_digits(number)
        cast.set("to", exp.DataType.build("DECIMAL({},{})".format(*digits)))
    elif int(cast.to.expressions[0].name) > NUMERIC_PRECISION_MAX:
        feature = f"numeric of {cast.to.expressions[0].name} digits"
        raise errors.FeatureNotSupported(feature=feature, instead=f"Up to {NUMERIC_PRECISION_MAX} are.")
    return cast


def _plain_number(cast: exp.Cast) -> Decimal | None:
    """A constant, which keeps its digits as a numeric without any declared."""
    given = cast.this.unnest()
    sign = "-" if isinstance(given, exp.Neg) else ""
    given = given.this.unnest() if sign else given
    if not isinstance(given, exp.Literal) or (sign and given.is_string):
        return None
    return plain_number(sign + given.name.strip())


def _bytea(cast: exp.Cast) -> exp.Expr:
    """DuckDB reads \\x before each byte, PostgreSQL once, or three digits behind each backslash."""
    text = _literal(cast)
    if text is None or "\\" not in text:
        return cast
    return exp.func("unhex", exp.Literal.string(coerce(_BYTEA, text).hex().upper()))


def _varchar(cast: exp.Cast) -> exp.Expr:
    if not cast.to.expressions:
        return _as_text(cast)
    return _cut(cast, cast.to.expressions[0].this.copy())


def _char(cast: exp.Cast) -> exp.Expr:
    """Without the spaces at the end, which do not count."""
    unlimited = cast.to.is_type(_DType.BPCHAR) and not cast.to.expressions
    length = cast.to.expressions[0].this.copy() if cast.to.expressions else exp.Literal.number(1)
    text = _as_text(cast) if unlimited else _cut(cast, length)
    return exp.func("rtrim", text, exp.Literal.string(" "))


def _name(cast: exp.Cast) -> exp.Expr:
    return _cut(cast, exp.Literal.number(NAME_BYTES_MAX))


def _cut(cast: exp.Cast, length: exp.Expr) -> exp.Expr:
    return exp.Left(this=_as_text(cast), expression=length)


def _as_text(cast: exp.Cast) -> exp.Expr:
    return cast_to_text(cast.this)


def cast_to_text(value: exp.Expr) -> exp.Expr:
    """As PostgreSQL writes it; of what is a text already there is no need to ask."""
    if isinstance(value, exp.Literal | exp.Parameter | exp.Null):
        return exp.cast(value.copy(), exp.DataType.build("TEXT"))
    return exp.Anonymous(this=f"{PREFIX}text", expressions=[value.copy()])


def _moment(cast: exp.Cast) -> exp.Expr:
    text = _literal(cast)
    if text is not None and text.strip().lower() in _ENDLESS:
        raise errors.FeatureNotSupported(feature=f"{text.strip()} as a date or time", instead="Use NULL.")
    return cast


def _zoned(cast: exp.Cast) -> exp.Expr:
    """DuckDB wants the zone right behind the time."""
    text = _literal(cast)
    if text is not None and _SPACED_ZONE.search(text):
        cast.set("this", exp.Literal.string(_SPACED_ZONE.sub(r"\1", text)))
    return _moment(cast)


def _time(cast: exp.Cast) -> exp.Expr:
    """DuckDB takes no time out of a moment with a zone."""
    value = cast.this.unnest()
    if isinstance(value, exp.Literal | exp.Parameter | exp.Null):
        return cast
    return exp.Anonymous(this=f"{PREFIX}time", expressions=[cast.this.copy()])


def _float(cast: exp.Cast) -> exp.Expr:
    """DuckDB takes what is too large for infinity."""
    value = cast.this
    if isinstance(value, exp.Literal) and not value.is_string and math.isinf(float(value.name)):
        raise errors.NumericValueOutOfRange(type="double precision", value=value.name)
    return cast


def _interval(cast: exp.Cast) -> exp.Expr:
    text = _literal(cast)
    return cast if text is None else _interval_of(text)


def _interval_of(text: str) -> exp.Expr:
    canonical = canonical_interval(parse_interval(text))
    return exp.cast(exp.Literal.string(canonical), exp.DataType.build("INTERVAL", dialect="duckdb"))


def _interval_words(interval: exp.Interval) -> str:
    """The parser takes the last unit out of the text."""
    unit = interval.args.get("unit")
    return f"{interval.this.name} {unit.name}" if unit is not None else interval.this.name


def _several_dimensions() -> errors.Error:
    return errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")


def _array(cast: exp.Cast) -> exp.Expr:
    inner = cast.to.expressions[0] if cast.to.expressions else None
    if isinstance(inner, exp.DataType) and inner.is_type(_DType.ARRAY):
        raise _several_dimensions()
    text = _literal(cast)
    if isinstance(cast.this, exp.Column):
        return _column_as_array(cast)
    if inner is not None and text is not None:
        items = [exp.null() if item is None else exp.Literal.string(item) for item in parse_array(text)]
    elif inner is not None and inner.expressions and isinstance(cast.this, exp.Array):
        # A length is one of each item.
        items = [item.copy() for item in cast.this.expressions]
    else:
        return cast
    values = [exp.cast(item, inner.copy()) for item in items]
    return exp.cast(exp.Array(expressions=[translate_casts(exp.Paren(this=v)).this for v in values]), cast.to.copy())


def _column_as_array(cast: exp.Cast) -> exp.Expr:
    """A text in a column is one of an array, too. What type it has DuckDB knows before it runs anything, so that one
    of the two is left."""
    value = exp.TryCast(this=cast.this.copy(), to=exp.DataType.build("TEXT"))
    listed = exp.cast(exp.Anonymous(this=f"{PREFIX}array", expressions=[value]), cast.to.copy())
    type_ = exp.Anonymous(this="typeof", expressions=[cast.this.copy()])
    is_text = exp.EQ(this=type_, expression=exp.Literal.string("VARCHAR"))
    return exp.paren(exp.case().when(is_text, listed).else_(cast.copy()))


_SPACED_ZONE: Final = re.compile(r"(?<=\d)\s+([+-]\d\d?(?::?\d\d)?)$")
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]+(?:_[0-9]+)*\s*")


def _integer(cast: exp.Cast) -> exp.Expr:
    """DuckDB reads fractions and exponents, and rounds."""
    text = _literal(cast)
    if text is not None and not _WHOLE.fullmatch(text):
        raise errors.InvalidTextRepresentation(type=cast.to.sql("postgres").lower(), value=text)
    return cast


def _boolean(cast: exp.Cast) -> exp.Expr:
    """Beginnings of words are enough."""
    text = _literal(cast)
    if text is None:
        return cast
    word = text.strip().lower()
    if word in ("1", "on") or (word and ("true".startswith(word) or "yes".startswith(word))):
        return exp.true()
    if word in ("0", "of", "off") or (word and ("false".startswith(word) or "no".startswith(word))):
        return exp.false()
    raise errors.InvalidTextRepresentation(type="boolean", value=text)


_TRANSLATIONS: Final[tuple[tuple[tuple[exp.DType, ...], Callable[[exp.Cast], exp.Expr]], ...]] = (
    ((_DType.DECIMAL,), _numeric),
    ((_DType.SMALLINT, _DType.INT, _DType.BIGINT), _integer),
    ((_DType.BOOLEAN,), _boolean),
    ((_DType.VARBINARY,), _bytea),
    ((_DType.TEXT,), _as_text),
    ((_DType.VARCHAR,), _varchar),
    ((_DType.CHAR, _DType.BPCHAR), _char),
    ((_DType.NAME,), _name),
    ((_DType.TIMESTAMPTZ,), _zoned),
    (_MOMENTS, _moment),
    ((_DType.TIME,), _time),
    (_BINARY, _float),
    ((_DType.INTERVAL,), _interval),
    ((_DType.ARRAY,), _array),
)
