"""Names and types in DDL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import ColumnType, UserType
from seachange.sql.text.tokens import Reader
from seachange.values.types import KIND_BY_ALIAS, MOMENT_DIGITS_MAX, NUMERIC_PRECISION_MAX, Kind, SqlType, array_of

# Type names of several words, longest first.
_LONG_TYPES: tuple[tuple[str, ...], ...] = tuple(
    sorted((tuple(alias.split()) for alias in KIND_BY_ALIAS if " " in alias), key=len, reverse=True)
)
_TIME_KINDS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
_ZONES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("with", "time", "zone"), True),
    (("without", "time", "zone"), False),
)
_FIELDS = ("year", "month", "day", "hour", "minute", "second")
# Type names of other databases, with what to write here.
_OTHER_TYPES: dict[str, str] = {
    "money": "Use numeric(18,2).",
    **dict.fromkeys(["bit", "varbit"], "Use text or bytea."),
    **dict.fromkeys(
        ["citext", "hstore", "jsonpath", "macaddr", "macaddr8", "pg_lsn", "refcursor", "tsquery", "tsvector", "xml"],
        "Use text.",
    ),
    "timetz": "Use timestamptz.",
    **dict.fromkeys(["cid", "pg_snapshot", "tid", "txid_snapshot", "xid", "xid8"], "Use bigint."),
    **dict.fromkeys(
        ["regclass", "regcollation", "regnamespace", "regoper", "regproc", "regprocedure", "regrole", "regtype"],
        "Columns of it are not supported: use text.",
    ),
    **dict.fromkeys(
        ["box", "circle", "line", "lseg", "path", "point", "polygon"], "Use columns of type double precision."
    ),
    **dict.fromkeys(["daterange", "int4range", "int8range", "numrange", "tsrange", "tstzrange"], "Use two columns."),
    **dict.fromkeys(
        ["datemultirange", "int4multirange", "int8multirange", "nummultirange", "tsmultirange", "tstzmultirange"],
        "Use a table.",
    ),
}
# The binary digits of float(n).
_REAL_DIGITS_MAX = 24
_DOUBLE_DIGITS_MAX = 53
_BUILT_IN_SCHEMA = "pg_catalog"
_Item = TypeVar("_Item")


# Byte order, the only collation.
_COLLATIONS = frozenset({"C", "POSIX", "ucs_basic", "default"})


def read_collation(reader: Reader) -> None:
    """After COLLATE: only byte order is accepted."""
    name = read_relation(reader)
    if name.name not in _COLLATIONS:
        raise errors.FeatureNotSupported(
            feature=f"collation {name}", instead="Omit it: texts are compared by code points."
        )


def read_list(reader: Reader, read: Callable[[Reader], _Item]) -> tuple[_Item, ...]:
    """One or more items, separated by commas."""
    found = [read(reader)]
    while reader.take_symbol(","):
        found.append(read(reader))
    return tuple(found)


def read_relation(reader: Reader) -> RelationName:
    first = reader.name()
    if not reader.take_symbol("."):
        return RelationName(None, first)
    second = reader.name()
    if not reader.take_symbol("."):
        return RelationName(first, second)
    return RelationName(second, reader.name(), database=first)


def read_relations(reader: Reader) -> tuple[RelationName, ...]:
    return read_list(reader, read_relation)


def read_column_path(reader: Reader) -> tuple[RelationName, str]:
    """A column qualified by its table: t.a or s.t.a."""
    parts = [reader.name()]
    while reader.take_symbol(".") and len(parts) < 3:
        parts.append(reader.name())
    if len(parts) == 1:
        raise errors.SyntaxProblem(detail=f'"{parts[0]}" is not a column qualified by its table')
    schema = parts[0] if len(parts) == 3 else None
    return RelationName(schema, parts[-2]), parts[-1]


def read_type(reader: Reader) -> SqlType:
    """A built-in type, which needs no catalog."""
    found = read_column_type(reader)
    if isinstance(found, UserType):
        raise errors.UndefinedObject(kind="type", name=found.name)
    return found


def read_column_type(reader: Reader) -> ColumnType:
    listed = KIND_BY_ALIAS.get(reader.plain().removeprefix("_"))
    if listed is not None and reader.plain().startswith("_"):
        # PostgreSQL's name of the array type.
        reader.next()
        return array_of(_with_modifiers(listed, ()))
    kind = _read_kind(reader)
    modifiers = _read_modifiers(reader)
    if kind is Kind.INTERVAL and any(reader.at(word) for word in _FIELDS):
        raise errors.FeatureNotSupported(feature="an interval with fields", instead="Leave the fields out.")
    if isinstance(kind, Kind) and kind in _TIME_KINDS:
        kind = _with_zone(reader, kind)
    is_array = _read_array(reader)
    if isinstance(kind, Kind):
        found = _with_modifiers(kind, modifiers)
        return array_of(found) if is_array else found
    if modifiers:
        raise errors.SyntaxProblem(detail=f'type modifier is not allowed for type "{kind.name}"')
    return UserType(kind.name, is_array)


def _read_array(reader: Reader) -> bool:
    """Whether the type is an array; a given size is ignored, as in PostgreSQL."""
    if reader.take("array"):
        if reader.take_symbol("["):
            reader.integer()
            reader.expect_symbol("]")
        return True
    dimensions = 0
    while reader.take_symbol("["):
        dimensions += 1
        if not reader.at_symbol("]"):
            reader.integer()
        reader.expect_symbol("]")
    if dimensions > 1:
        raise errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")
    return dimensions == 1


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
    refuse_type(name)
    return UserType(found)


def refuse_type(name: str) -> None:
    """Rejects a type that PostgreSQL or one of its extensions has and Seachange has not."""
    plain = name.removeprefix("_")
    if plain.startswith("interval "):
        raise errors.FeatureNotSupported(feature="an interval with fields", instead="Use interval.")
    if plain in _OTHER_TYPES:
        raise errors.FeatureNotSupported(feature=f"type {name}", instead=_OTHER_TYPES[plain])


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
            return SqlType(kind)
        case Kind.NUMERIC, (precision, *scales) if len(scales) < 2:
            scale = scales[0] if scales else 0
            if precision > NUMERIC_PRECISION_MAX:
                raise errors.FeatureNotSupported(
                    feature=f"numeric of {precision} digits",
                    instead=f"At most {NUMERIC_PRECISION_MAX} digits are supported.",
                )
            if precision < 1 or scale > precision:
                raise errors.InvalidSetting(name="numeric", value=modifiers)
            return SqlType(kind, precision, scale)
        case ((Kind.VARCHAR | Kind.CHAR), (length,)) if length > 0:
            return SqlType(kind, length=length)
        case Kind.CHAR, ():
            return SqlType(kind, length=1)
        case Kind.DOUBLE, (digits,) if 1 <= digits <= _DOUBLE_DIGITS_MAX:
            return SqlType(Kind.REAL if digits <= _REAL_DIGITS_MAX else kind)
        case (_, ()) | (Kind.INTERVAL, (6,)):
            return SqlType(kind)
        case ((Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ), (digits,)) if digits <= MOMENT_DIGITS_MAX:
            return SqlType(kind, digits if digits == MOMENT_DIGITS_MAX else 0, MOMENT_DIGITS_MAX - digits)
        case _:
            feature = f"type {kind} with modifiers {modifiers}"
            raise errors.FeatureNotSupported(feature=feature, instead="")
