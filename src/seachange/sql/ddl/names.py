"""Names, types and constants, as they stand in DDL."""

from __future__ import annotations

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import Constant
from seachange.model.types import (
    KIND_BY_ALIAS,
    NUMERIC_DEFAULT,
    NUMERIC_PRECISION_MAX,
    Kind,
    SqlType,
)
from seachange.sql import tokens
from seachange.sql.tokens import Reader

# Types of more than one word, longest first.
_LONG_TYPES: tuple[tuple[str, ...], ...] = tuple(
    sorted((tuple(alias.split()) for alias in KIND_BY_ALIAS if " " in alias), key=len, reverse=True)
)
_TIME_KINDS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
_ZONES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("with", "time", "zone"), True),
    (("without", "time", "zone"), False),
)
# What people write instead, and what to write here.
_OTHER_TYPES: dict[str, str] = {
    "serial": "Use bigint and give the values.",
    "bigserial": "Use bigint and give the values.",
    "smallserial": "Use smallint and give the values.",
    "char": "Use text or varchar(n).",
    "character": "Use text or varchar(n).",
    "json": "Use text.",
    "jsonb": "Use text.",
    "interval": "Use bigint for a number of microseconds.",
    "money": "Use numeric(18,2).",
}


def read_relation(reader: Reader) -> RelationName:
    first = reader.name()
    if not reader.take_symbol("."):
        return RelationName(None, first)
    return RelationName(first, reader.name())


def read_type(reader: Reader) -> SqlType:
    kind = _read_kind(reader)
    modifiers = _read_modifiers(reader)
    if kind in _TIME_KINDS:
        kind = _with_zone(reader, kind)
    if reader.take_symbol("["):
        raise errors.FeatureNotSupported(feature="an array column", instead="Use text.")
    return _with_modifiers(kind, modifiers)


def _read_kind(reader: Reader) -> Kind:
    for words in _LONG_TYPES:
        if reader.take(*words):
            return KIND_BY_ALIAS[" ".join(words)]
    name = reader.name()
    kind = KIND_BY_ALIAS.get(name)
    if kind is not None:
        return kind
    if name in _OTHER_TYPES:
        raise errors.FeatureNotSupported(feature=f"type {name}", instead=_OTHER_TYPES[name])
    raise errors.UndefinedObject(kind="type", name=name)


def _read_modifiers(reader: Reader) -> tuple[int, ...]:
    if not reader.take_symbol("("):
        return ()
    modifiers = [reader.integer()]
    while reader.take_symbol(","):
        modifiers.append(reader.integer())
    reader.expect_symbol(")")
    return tuple(modifiers)


def _with_zone(reader: Reader, kind: Kind) -> Kind:
    for words, zoned in _ZONES:
        if reader.take(*words):
            if not zoned:
                return kind
            if kind is Kind.TIME:
                raise errors.FeatureNotSupported(feature="time with time zone", instead="Use timestamptz.")
            return Kind.TIMESTAMPTZ
    return kind


def _with_modifiers(kind: Kind, modifiers: tuple[int, ...]) -> SqlType:
    match kind, modifiers:
        case Kind.NUMERIC, ():
            return SqlType(kind, *NUMERIC_DEFAULT)
        case Kind.NUMERIC, (precision, *scales) if len(scales) < 2:
            scale = scales[0] if scales else 0
            if not 1 <= precision <= NUMERIC_PRECISION_MAX or scale > precision:
                raise errors.InvalidSetting(name="numeric", value=modifiers)
            return SqlType(kind, precision, scale)
        case Kind.VARCHAR, (length,) if length > 0:
            return SqlType(kind, length=length)
        case _, ():
            return SqlType(kind)
        case ((Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ), (6,)):
            return SqlType(kind)
        case _:
            feature = f"type {kind} with modifiers {modifiers}"
            raise errors.FeatureNotSupported(feature=feature, instead="")


def read_constant(reader: Reader) -> Constant:
    """A literal, perhaps signed, in parentheses or with a cast."""
    if reader.take_symbol("("):
        constant = read_constant(reader)
        reader.expect_symbol(")")
    else:
        constant = _read_literal(reader)
    while reader.take_symbol("::"):
        read_type(reader)
    return constant


def _read_literal(reader: Reader) -> Constant:
    sign = "-" if reader.take_symbol("-") else ""
    if not sign:
        reader.take_symbol("+")
    word = reader.next()
    if word.kind is tokens.Kind.NUMBER:
        return Constant(sign + word.text)
    if not sign and word.kind is tokens.Kind.STRING:
        return Constant(word.text, quoted=True)
    if not sign and word.kind is tokens.Kind.WORD:
        if word.text == "null":
            return Constant(None)
        if word.text in ("true", "false"):
            return Constant(word.text)
        literal = reader.peek() if word.text in KIND_BY_ALIAS else None
        if literal is not None and literal.kind is tokens.Kind.STRING:
            return Constant(reader.next().text, quoted=True)
    raise errors.FeatureNotSupported(
        feature=f'a default that is not a constant ("{word.text}")', instead="Give a literal."
    )
