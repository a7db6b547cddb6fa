"""SQL types, and the one table that says how each is called elsewhere."""

from __future__ import annotations

import re
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
    CHAR = "character"
    NAME = "name"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    UUID = "uuid"
    JSON = "json"
    JSONB = "jsonb"
    OID = "oid"
    ARRAY = "array"


class Category(StrEnum):
    """PostgreSQL's letters for families of types (pg_type.typcategory)."""

    BOOLEAN = "B"
    NUMBER = "N"
    STRING = "S"
    MOMENT = "D"
    SPAN = "T"
    OTHER = "U"
    ARRAY = "A"


@dataclass(frozen=True, slots=True)
class KindNames:
    """What one kind is elsewhere.

    `duckdb` is its type in expressions and may hold {precision} and {scale}; `arrow` names the function of pyarrow
    whose type rows have in memory and in files, and `stored` what DuckDB takes that for, where it is not `duckdb`.
    `spark` is its type in a DataFrame, `width` that of the binary form (-1: it varies). `key`: values can be looked up
    and sorted by."""

    duckdb: str
    arrow: str
    oid: int
    array_oid: int
    aliases: tuple[str, ...]
    category: Category
    width: int
    spark: str
    parquet: str
    stored: str = ""
    key: bool = True


NAMES: dict[Kind, KindNames] = {
    Kind.BOOLEAN: KindNames(
        "BOOLEAN", "bool_", 16, 1000, ("boolean", "bool"), Category.BOOLEAN, 1, "BOOLEAN", "BOOLEAN"
    ),
    Kind.SMALLINT: KindNames(
        "SMALLINT", "int16", 21, 1005, ("smallint", "int2"), Category.NUMBER, 2, "SMALLINT", "INT32 (INT(16))"
    ),
    Kind.INTEGER: KindNames(
        "INTEGER", "int32", 23, 1007, ("integer", "int", "int4"), Category.NUMBER, 4, "INT", "INT32"
    ),
    Kind.BIGINT: KindNames("BIGINT", "int64", 20, 1016, ("bigint", "int8"), Category.NUMBER, 8, "BIGINT", "INT64"),
    Kind.REAL: KindNames("FLOAT", "float32", 700, 1021, ("real", "float4"), Category.NUMBER, 4, "FLOAT", "FLOAT"),
    Kind.DOUBLE: KindNames(
        "DOUBLE", "float64", 701, 1022, ("double precision", "float8", "float"), Category.NUMBER, 8, "DOUBLE", "DOUBLE"
    ),
    Kind.NUMERIC: KindNames(
        "DECIMAL({precision},{scale})",
        "decimal128",
        1700,
        1231,
        ("numeric", "decimal", "dec"),
        Category.NUMBER,
        -1,
        "DECIMAL({precision},{scale})",
        "DECIMAL({precision},{scale})",
    ),
    Kind.TEXT: KindNames("VARCHAR", "string", 25, 1009, ("text",), Category.STRING, -1, "STRING", "STRING"),
    Kind.VARCHAR: KindNames(
        "VARCHAR", "string", 1043, 1015, ("character varying", "varchar"), Category.STRING, -1, "STRING", "STRING"
    ),
    Kind.CHAR: KindNames(
        "VARCHAR", "string", 1042, 1014, ("character", "char"), Category.STRING, -1, "STRING", "STRING"
    ),
    Kind.NAME: KindNames("VARCHAR", "string", 19, 1003, ("name",), Category.STRING, 64, "STRING", "STRING"),
    Kind.BYTEA: KindNames("BLOB", "binary", 17, 1001, ("bytea",), Category.OTHER, -1, "BINARY", "BYTE_ARRAY"),
    Kind.DATE: KindNames("DATE", "date32", 1082, 1182, ("date",), Category.MOMENT, 4, "DATE", "DATE"),
    Kind.TIME: KindNames(
        "TIME", "time64", 1083, 1183, ("time without time zone", "time"), Category.MOMENT, 8, "STRING", "TIME(MICROS)"
    ),
    Kind.TIMESTAMP: KindNames(
        "TIMESTAMP",
        "timestamp",
        1114,
        1115,
        ("timestamp without time zone", "timestamp"),
        Category.MOMENT,
        8,
        "TIMESTAMP_NTZ",
        "TIMESTAMP(MICROS)",
    ),
    Kind.TIMESTAMPTZ: KindNames(
        "TIMESTAMP WITH TIME ZONE",
        "timestamp_utc",
        1184,
        1185,
        ("timestamp with time zone", "timestamptz"),
        Category.MOMENT,
        8,
        "TIMESTAMP",
        "TIMESTAMP(MICROS, UTC)",
    ),
    # Arrow's own type of months, days and nanoseconds is none of Parquet's, and ends at 292 years.
    Kind.INTERVAL: KindNames(
        "INTERVAL", "string", 1186, 1187, ("interval",), Category.SPAN, 16, "STRING", "STRING", "VARCHAR", False
    ),
    Kind.UUID: KindNames("UUID", "uuid", 2950, 2951, ("uuid",), Category.OTHER, 16, "STRING", "UUID"),
    # The text as it was given; the text that PostgreSQL shows for it.
    Kind.JSON: KindNames("VARCHAR", "string", 114, 199, ("json",), Category.OTHER, -1, "STRING", "STRING", key=False),
    Kind.JSONB: KindNames(
        "JSON", "string", 3802, 3807, ("jsonb",), Category.OTHER, -1, "STRING", "STRING", "VARCHAR", False
    ),
    Kind.OID: KindNames("UINTEGER", "uint32", 26, 1028, ("oid",), Category.NUMBER, 4, "BIGINT", "INT32 (UINT(32))"),
    # Of its elements; written with [] behind their type.
    Kind.ARRAY: KindNames("{element}[]", "list_", 2277, 0, (), Category.ARRAY, -1, "ARRAY", "LIST", "", False),
}

KIND_BY_ALIAS: dict[str, Kind] = {alias: kind for kind, names in NAMES.items() for alias in names.aliases}

NUMERIC_PRECISION_MAX = 38
# What `numeric` without a precision holds: every value up to 38 digits of which 18 follow the point.
NUMERIC_DEFAULT = (38, 18)
# How many digits DuckDB has behind the point of a quotient: as a rule, and of what has many or few before it. Other
# numerics of 38 digits rarely have so many.
QUOTIENT_SCALE = 21
QUOTIENT_SCALES = (19, QUOTIENT_SCALE, 27)
# Behind the second.
MOMENT_DIGITS_MAX = 6
# A name is cut at this many bytes.
NAME_BYTES_MAX = 63


MOMENTS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
# Keys are encoded from values as DuckDB and Arrow give them to Python; of others, from what rows hold.
ENCODED_AS_GIVEN = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.VARCHAR})


@dataclass(frozen=True, slots=True)
class SqlType:
    """A kind with its modifiers: (precision, scale) of a numeric (0: none), length of a varchar or char (0: none). The
    `scale` of a time is how many of its six digits behind the second are always zero; its `precision` is 6 if that was
    declared, which changes nothing but its name. `enum` is the id of the
    descriptor of an enum type (0: none). A row holds an enum's value as a text that never changes, mostly its first
    label (`Value.held`), and so do constants in descriptors: another label touches none of them. Expressions see
    labels. `element` is the type of an array's elements; an array has the `enum` that these have."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0
    enum: int = 0
    element: SqlType | None = None

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.element}[]"
        if self.kind is Kind.NUMERIC and self.precision:
            return f"numeric({self.precision},{self.scale})"
        if self.length:
            return f"{self.kind.value}({self.length})"
        if self.moment_digits is not None:
            name, space, zone = self.kind.value.partition(" ")
            return f"{name}({self.moment_digits}){space}{zone}"
        return self.kind.value

    @property
    def moment_digits(self) -> int | None:
        """How many digits behind the second were declared."""
        declared = self.kind in MOMENTS and (self.precision or self.scale)
        return MOMENT_DIGITS_MAX - self.scale if declared else None

    @property
    def digits(self) -> tuple[int, int]:
        """Precision and scale of a numeric."""
        return (self.precision, self.scale) if self.precision else NUMERIC_DEFAULT

    @property
    def duckdb(self) -> str:
        """The type of its values in DuckDB's expressions."""
        if self.element is not None:
            return f"{self.element.duckdb}[]"
        precision, scale = self.digits
        return NAMES[self.kind].duckdb.format(precision=precision, scale=scale)

    @property
    def stored(self) -> str:
        """What DuckDB takes stored values for."""
        if self.element is not None:
            # Arrow has no arrays of its type for UUIDs.
            return "VARCHAR[]" if self.element.kind is Kind.UUID else f"{self.element.stored}[]"
        return NAMES[self.kind].stored or self.duckdb

    @property
    def unmodified(self) -> SqlType:
        """Without modifiers, as a parameter has it: they are for who stores a value, not for who compares with it."""
        element = self.element.unmodified if self.element is not None else None
        return SqlType(self.kind, enum=self.enum, element=element)

    @property
    def oid(self) -> int:
        return NAMES[self.element.kind].array_oid if self.element is not None else NAMES[self.kind].oid

    @property
    def is_key(self) -> bool:
        """Whether values can be looked up and sorted by."""
        return NAMES[self.kind].key


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, enum=element.enum, element=element)


# Types of DuckDB's that are no column's, and of several kinds with one the first: the nearest.
_DUCKDB_KINDS: dict[str, Kind] = {
    **{names.duckdb: kind for kind, names in reversed(NAMES.items()) if "{" not in names.duckdb},
    "TINYINT": Kind.SMALLINT,
    "UTINYINT": Kind.SMALLINT,
    "USMALLINT": Kind.INTEGER,
    "TIMESTAMP_S": Kind.TIMESTAMP,
    "TIMESTAMP_MS": Kind.TIMESTAMP,
    "TIMESTAMP_NS": Kind.TIMESTAMP,
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_WIDE_INTEGERS = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})


def from_duckdb(name: str) -> SqlType | None:
    """The type that values of one of DuckDB's have; None for those that have none, as of NULL alone.

    >>> str(from_duckdb("DECIMAL(9,2)[]"))
    'numeric(9,2)[]'
    """
    if name.endswith("[]"):
        # Labels are texts to whoever does not know their type.
        element = TEXT if name.startswith("ENUM(") and name.endswith(")[]") else from_duckdb(name[:-2])
        return None if element is None or element.element is not None else array_of(element)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        digits = (int(decimal[1]), int(decimal[2]))
        # A product may have more digits behind its point than a numeric without any.
        is_default = digits[0] == NUMERIC_DEFAULT[0] and digits[1] >= NUMERIC_DEFAULT[1]
        return SqlType(Kind.NUMERIC, *(() if is_default else digits))
    if name in _WIDE_INTEGERS:
        return SqlType(Kind.NUMERIC, NUMERIC_PRECISION_MAX)
    kind = _DUCKDB_KINDS.get(name)
    return None if kind is None else SqlType(kind)


def computed_type(name: str) -> SqlType | None:
    """The same for what is no column of a table: a quotient, which shows zeros at its end, is told by its `scale`."""
    if name.endswith("[]"):
        element = computed_type(name[:-2])
        return from_duckdb(name) if element is None or element.element is not None else array_of(element)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None and int(decimal[1]) == NUMERIC_PRECISION_MAX and int(decimal[2]) in QUOTIENT_SCALES:
        return SqlType(Kind.NUMERIC, scale=int(decimal[2]))
    return from_duckdb(name)


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
        (Kind.NAME, Kind.TEXT),
        (Kind.OID, Kind.BIGINT),
        (Kind.JSONB, Kind.JSON),
    }
)


def widens(old: SqlType, new: SqlType) -> bool:
    """Whether a column may change from `old` to `new` without moving bytes."""
    if old.enum != new.enum:
        return False
    if old.kind is new.kind:
        if old.kind is Kind.NUMERIC:
            return new.digits[1] == old.digits[1] and new.digits[0] >= old.digits[0]
        if old.element is not None and new.element is not None:
            return old.element == new.element
        if old.kind is Kind.CHAR:
            return old.length <= new.length
        if old.kind in MOMENTS:
            return new.scale <= old.scale
        return new.length == 0 or 0 < old.length <= new.length
    return (old.kind, new.kind) in WIDENINGS


INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_NUMBERS = frozenset({*INTEGERS, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})
_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME})
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
        (Kind.TIME, Kind.INTERVAL),
        (Kind.INTERVAL, Kind.TIME),
        (Kind.JSON, Kind.JSONB),
        (Kind.JSONB, Kind.JSON),
        *((kind, Kind.OID) for kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)),
        *((Kind.OID, kind) for kind in (Kind.INTEGER, Kind.BIGINT)),
    }
)


def assignable(old: SqlType, new: SqlType) -> bool:
    """Whether values of `old` become values of `new` without an explicit cast; a single value may still have none."""
    if new.enum or old.enum:
        return (old.enum == new.enum and old.kind is new.kind) or (not new.enum and new.kind in _STRINGS)
    if old.element is not None and new.element is not None:
        return assignable(old.element, new.element)
    if old.kind is new.kind or new.kind in _STRINGS:
        return True
    return (old.kind in _NUMBERS and new.kind in _NUMBERS) or (old.kind, new.kind) in ASSIGNMENTS
