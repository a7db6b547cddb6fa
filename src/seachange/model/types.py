"""SQL types, and the one table that says how each is called elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "character varying"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class KindNames:
    """What one kind is called: `duckdb` may hold {precision} and {scale}; `arrow` names a function of pyarrow."""

    duckdb: str
    arrow: str
    oid: int
    aliases: tuple[str, ...]


NAMES: dict[Kind, KindNames] = {
    Kind.BOOLEAN: KindNames("BOOLEAN", "bool_", 16, ("boolean", "bool")),
    Kind.SMALLINT: KindNames("SMALLINT", "int16", 21, ("smallint", "int2")),
    Kind.INTEGER: KindNames("INTEGER", "int32", 23, ("integer", "int", "int4")),
    Kind.BIGINT: KindNames("BIGINT", "int64", 20, ("bigint", "int8")),
    Kind.REAL: KindNames("FLOAT", "float32", 700, ("real", "float4")),
    Kind.DOUBLE: KindNames("DOUBLE", "float64", 701, ("double precision", "float8", "float")),
    Kind.NUMERIC: KindNames("DECIMAL({precision},{scale})", "decimal128", 1700, ("numeric", "decimal")),
    Kind.TEXT: KindNames("VARCHAR", "string", 25, ("text",)),
    Kind.VARCHAR: KindNames("VARCHAR", "string", 1043, ("character varying", "varchar")),
    Kind.BYTEA: KindNames("BLOB", "binary", 17, ("bytea",)),
    Kind.DATE: KindNames("DATE", "date32", 1082, ("date",)),
    Kind.TIME: KindNames("TIME", "time64", 1083, ("time without time zone", "time")),
    Kind.TIMESTAMP: KindNames("TIMESTAMP", "timestamp", 1114, ("timestamp without time zone", "timestamp")),
    Kind.TIMESTAMPTZ: KindNames(
        "TIMESTAMP WITH TIME ZONE", "timestamp_utc", 1184, ("timestamp with time zone", "timestamptz")
    ),
    Kind.UUID: KindNames("UUID", "uuid", 2950, ("uuid",)),
}

KIND_BY_ALIAS: dict[str, Kind] = {alias: kind for kind, names in NAMES.items() for alias in names.aliases}

NUMERIC_PRECISION_MAX = 38
# What `numeric` without a precision means: every value up to 38 digits of which 18 follow the point.
NUMERIC_DEFAULT = (38, 18)


@dataclass(frozen=True, slots=True)
class SqlType:
    """A kind with its modifiers: (precision, scale) of a numeric, length of a varchar (0: none). `enum` is the id of
    the descriptor of an enum type (0: none). A row holds an enum's value as a text that never changes, mostly its first
    label (`Value.held`), and so do constants in descriptors: another label touches none of them. Expressions see
    labels."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0
    enum: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.NUMERIC:
            return f"numeric({self.precision},{self.scale})"
        if self.length:
            return f"{self.kind.value}({self.length})"
        return self.kind.value

    @property
    def duckdb(self) -> str:
        return NAMES[self.kind].duckdb.format(precision=self.precision, scale=self.scale)


BIGINT = SqlType(Kind.BIGINT)
TEXT = SqlType(Kind.TEXT)

# (from, to) pairs whose values need no rewriting: every old value is a value of the new type, cast on read.
WIDENINGS: frozenset[tuple[Kind, Kind]] = frozenset(
    {
        (Kind.SMALLINT, Kind.INTEGER),
        (Kind.SMALLINT, Kind.BIGINT),
        (Kind.INTEGER, Kind.BIGINT),
        (Kind.REAL, Kind.DOUBLE),
        (Kind.VARCHAR, Kind.TEXT),
    }
)


def widens(old: SqlType, new: SqlType) -> bool:
    """Whether a column may change from `old` to `new` without moving bytes."""
    if old.enum != new.enum:
        return False
    if old.kind is new.kind:
        if old.kind is Kind.NUMERIC:
            return new.scale == old.scale and new.precision >= old.precision
        return new.length == 0 or 0 < old.length <= new.length
    return (old.kind, new.kind) in WIDENINGS


_NUMBERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})
_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR})
# Besides numbers to numbers and anything to strings: casts that PostgreSQL makes without being asked.
ASSIGNMENTS: frozenset[tuple[Kind, Kind]] = frozenset(
    {
        (Kind.DATE, Kind.TIMESTAMP),
        (Kind.DATE, Kind.TIMESTAMPTZ),
        (Kind.TIMESTAMP, Kind.DATE),
        (Kind.TIMESTAMP, Kind.TIME),
        (Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
        (Kind.TIMESTAMPTZ, Kind.DATE),
        (Kind.TIMESTAMPTZ, Kind.TIME),
        (Kind.TIMESTAMPTZ, Kind.TIMESTAMP),
    }
)


def assignable(old: SqlType, new: SqlType) -> bool:
    """Whether values of `old` become values of `new` without an explicit cast; a single value may still have none."""
    if new.enum or old.enum:
        return old.enum == new.enum or (not new.enum and new.kind in _STRINGS)
    if old.kind is new.kind or new.kind in _STRINGS:
        return True
    return (old.kind in _NUMBERS and new.kind in _NUMBERS) or (old.kind, new.kind) in ASSIGNMENTS
