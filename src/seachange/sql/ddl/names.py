"""Names and types, as they stand in DDL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import ColumnType, UserType
from seachange.model.types import (
    KIND_BY_ALIAS,
    NUMERIC_DEFAULT,
    NUMERIC_PRECISION_MAX,
    Kind,
    SqlType,
)
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
    "char": "Use text or varchar(n).",
    "character": "Use text or varchar(n).",
    "json": "Use text.",
    "jsonb": "Use text.",
    "interval": "Use bigint for a number of microseconds.",
    "money": "Use numeric(18,2).",
    "oid": "Use bigint.",
    "bit": "Use text or bytea.",
    **dict.fromkeys(["cidr", "citext", "hstore", "inet", "macaddr", "name", "tsquery", "tsvector", "xml"], "Use text."),
    **dict.fromkeys(
        ["box", "circle", "line", "lseg", "path", "point", "polygon"], "Use columns of type double precision."
    ),
    **dict.fromkeys(["daterange", "int4range", "int8range", "numrange", "tsrange", "tstzrange"], "Use two columns."),
}
_BUILT_IN_SCHEMA = "pg_catalog"
_Item = TypeVar("_Item")


def read_list(reader: Reader, read: Callable[[Reader], _Item]) -> tuple[_Item, ...]:
    """One or more items with commas between them."""
    found = [read(reader)]
    while reader.take_symbol(","):
        found.append(read(reader))
    return tuple(found)


def read_relation(reader: Reader) -> RelationName:
    first = reader.name()
    if not reader.take_symbol("."):
        return RelationName(None, first)
    name = RelationName(first, reader.name())
    if reader.at_symbol("."):
        raise errors.FeatureNotSupported(feature="the name of a database before a name", instead="Leave it out.")
    return name


def read_relations(reader: Reader) -> tuple[RelationName, ...]:
    return read_list(reader, read_relation)


def read_column_path(reader: Reader) -> tuple[RelationName, str]:
    """A column after its table: t.a or s.t.a."""
    parts = [reader.name()]
    while reader.take_symbol(".") and len(parts) < 3:
        parts.append(reader.name())
    if len(parts) == 1:
        raise errors.SyntaxProblem(detail=f'"{parts[0]}" is no column with the name of its table before it')
    schema = parts[0] if len(parts) == 3 else None
    return RelationName(schema, parts[-2]), parts[-1]


def read_type(reader: Reader) -> SqlType:
    """A type that needs no catalog."""
    found = read_column_type(reader)
    if isinstance(found, UserType):
        raise errors.UndefinedObject(kind="type", name=found.name)
    return found


def read_column_type(reader: Reader) -> ColumnType:
    kind = _read_kind(reader)
    modifiers = _read_modifiers(reader)
    if isinstance(kind, Kind) and kind in _TIME_KINDS:
        kind = _with_zone(reader, kind)
    if reader.at_symbol("[") or reader.at("array"):
        raise errors.FeatureNotSupported(feature="an array column", instead="Use text.")
    if isinstance(kind, Kind):
        return _with_modifiers(kind, modifiers)
    if modifiers:
        raise errors.SyntaxProblem(detail=f'type modifier is not allowed for type "{kind.name}"')
    return kind


def _read_kind(reader: Reader) -> Kind | UserType:
    for words in _LONG_TYPES:
        if reader.take(*words):
            return KIND_BY_ALIAS[" ".join(words)]
    found = read_relation(reader)
    if found.schema not in (None, _BUILT_IN_SCHEMA):
        return UserType(found)
    name = found.name
    if name in KIND_BY_ALIAS:
        return KIND_BY_ALIAS[name]
    if name in _OTHER_TYPES:
        raise errors.FeatureNotSupported(feature=f"type {name}", instead=_OTHER_TYPES[name])
    return UserType(found)


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
