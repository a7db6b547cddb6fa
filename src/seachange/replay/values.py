"""Generated values of every type, each with its SQL literal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from seachange.model.schema.enums import quote_text
from seachange.replay.seeded_random import SeededRandom
from seachange.values.types import Kind, SqlType

_WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "isle", "juniper", "kelp", "linden")
# A range so large that a collision is practically impossible.
_MANY = 1 << 62
_TEXT_LENGTH = 24


@dataclass(frozen=True, slots=True)
class Made:
    """A value as stored, where CHECKs need it, and as a SQL literal."""

    value: Any
    literal: str


NULL = Made(None, "NULL")


def quoted(text: str) -> Made:
    return Made(text, quote_text(text))


def number(value: int | Decimal) -> Made:
    return Made(value, str(value))


def make(type_: SqlType, labels: tuple[str, ...], random_source: SeededRandom, distinct: bool = False) -> Made:
    """A value of the type; `labels` are those of an enum. A `distinct` one is drawn from the whole range of the
    type."""
    if type_.enum and type_.element is not None:
        return Made([], "'{}'")
    if type_.enum:
        return quoted(random_source.pick(labels)) if labels else NULL
    if type_.element is not None:
        return _array(type_.element, random_source)
    return _MAKERS[type_.kind](type_, random_source, distinct)


def _boolean(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    value = random_source.chance(50)
    return Made(value, "true" if value else "false")


# A bigint may be the key that an integer refers to.
_INTEGER_BOUNDS = {Kind.SMALLINT: 1 << 15, Kind.INTEGER: 1 << 31, Kind.BIGINT: 1 << 31, Kind.OID: 1 << 31}
# For columns that are not keys: small numbers fit every type that a later migration may choose.
_SMALL = 100


def _integer(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return number(1 + random_source.below(_INTEGER_BOUNDS[type_.kind] - 1 if distinct else _SMALL))


def _numeric(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    precision, scale = type_.digits
    units = 10 ** min(precision, 18 if distinct else scale + 2)
    return number(Decimal(1 + random_source.below(max(units - 1, 1))).scaleb(-scale))


def _real(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    value = (1 + random_source.below(1 << 20 if distinct else _SMALL)) / 4
    return Made(value, repr(value))


def word(random_source: SeededRandom, length: int, distinct: bool) -> str:
    """A text of at most `length` characters."""
    if distinct:
        tail = f"{random_source.below(_MANY):x}"
        has_room = length > len(tail) + len("juniper-")
        return f"{random_source.pick(_WORDS)}-{tail}"[:length] if has_room else tail[:length]
    return f"{random_source.pick(_WORDS)} {random_source.below(_SMALL)}"[:length]


def _text(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return quoted(word(random_source, type_.length or _TEXT_LENGTH, distinct).rstrip())


def _bytes(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return Made(None, f"'\\x{random_source.below(_MANY):016x}'")


def _date_text(random_source: SeededRandom, distinct: bool) -> str:
    years = 900 if distinct else 6
    return f"{2020 + random_source.below(years)}-{1 + random_source.below(12):02}-{1 + random_source.below(28):02}"


def _time_text(random_source: SeededRandom) -> str:
    return f"{random_source.below(24):02}:{random_source.below(60):02}:{random_source.below(60):02}"


def _date(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return Made(None, quote_text(_date_text(random_source, distinct)))


def _time(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return Made(None, quote_text(_time_text(random_source)))


def _moment(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    zone = "+00" if type_.kind is Kind.TIMESTAMPTZ else ""
    return Made(None, quote_text(f"{_date_text(random_source, distinct)} {_time_text(random_source)}{zone}"))


def _interval(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return Made(None, f"'{1 + random_source.below(60)} days'")


def _uuid(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    digits = f"{random_source.below(1 << 64):016x}{random_source.below(1 << 64):016x}"
    return Made(None, f"'{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'")


def _address(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    number = random_source.below(1 << 32)
    octets = ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))
    return Made(None, quote_text(octets))


def _json(type_: SqlType, random_source: SeededRandom, distinct: bool) -> Made:
    return Made(None, f"""'{{"note": "{random_source.pick(_WORDS)}", "count": {random_source.below(_SMALL)}}}'""")


def _array(element: SqlType, random_source: SeededRandom) -> Made:
    items = [make(element, (), random_source) for _ in range(random_source.below(4))]
    inner = ",".join('"' + item.literal.strip("'").replace('"', '\\"') + '"' for item in items)
    return Made(None, f"'{{{inner}}}'")


_MAKERS: dict[Kind, Callable[[SqlType, SeededRandom, bool], Made]] = {
    Kind.BOOLEAN: _boolean,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.OID: _integer,
    Kind.NUMERIC: _numeric,
    Kind.REAL: _real,
    Kind.DOUBLE: _real,
    Kind.TEXT: _text,
    Kind.VARCHAR: _text,
    Kind.CHAR: _text,
    Kind.NAME: _text,
    Kind.BYTEA: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _moment,
    Kind.TIMESTAMPTZ: _moment,
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
    Kind.JSON: _json,
    Kind.JSONB: _json,
    Kind.INET: _address,
    Kind.CIDR: _address,
}
