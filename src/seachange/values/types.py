"""SQL types, and the table of their names and representations elsewhere."""

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
    INET = "inet"
    CIDR = "cidr"
    ARRAY = "array"


class Category(StrEnum):
    """PostgreSQL's letters for families of types (pg_type.typcategory)."""

    BOOLEAN = "B"
    NUMBER = "N"
    STRING = "S"
    MOMENT = "D"
    SPAN = "T"
    NETWORK = "I"
    OTHER = "U"
    ARRAY = "A"


@dataclass(frozen=True, slots=True)
class KindNames:
    """The representations of a kind elsewhere.

    `duckdb` is its type in expressions and may contain {precision} and {scale}; `arrow` names the pyarrow function
    whose type rows have in memory and in files, and `stored` the DuckDB type of that, where it is not `duckdb`. `spark`
    is its type in a DataFrame, `width` that of the binary format (-1: it varies). `key`: values can be looked up and
    sorted by.
    """

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
    # Parquet does not have Arrow's interval type, which also ends at 292 years.
    Kind.INTERVAL: KindNames(
        "INTERVAL", "string", 1186, 1187, ("interval",), Category.SPAN, 16, "STRING", "STRING", "VARCHAR", False
    ),
    Kind.UUID: KindNames("UUID", "uuid", 2950, 2951, ("uuid",), Category.OTHER, 16, "STRING", "UUID"),
    # json: the text as it was given; jsonb: the text that PostgreSQL prints.
    Kind.JSON: KindNames("VARCHAR", "string", 114, 199, ("json",), Category.OTHER, -1, "STRING", "STRING", key=False),
    Kind.JSONB: KindNames(
        "JSON", "string", 3802, 3807, ("jsonb",), Category.OTHER, -1, "STRING", "STRING", "VARCHAR", False
    ),
    Kind.OID: KindNames("UINTEGER", "uint32", 26, 1028, ("oid",), Category.NUMBER, 4, "BIGINT", "INT32 (UINT(32))"),
    # DuckDB has no such types in its core. Bit strings, which nothing else here is, compare as the bytes in them.
    Kind.INET: KindNames("BIT", "binary", 869, 1041, ("inet",), Category.NETWORK, -1, "STRING", "BYTE_ARRAY", "BLOB"),
    Kind.CIDR: KindNames("BIT", "binary", 650, 651, ("cidr",), Category.NETWORK, -1, "STRING", "BYTE_ARRAY", "BLOB"),
    # Written as the type of the elements with [] after it.
    Kind.ARRAY: KindNames("{element}[]", "list_", 2277, 0, (), Category.ARRAY, -1, "ARRAY", "LIST", "", False),
}

KIND_BY_ALIAS: dict[str, Kind] = {alias: kind for kind, names in NAMES.items() for alias in names.aliases}

NUMERIC_PRECISION_MAX = 38
# The storage of `numeric` without a precision: 38 digits, 18 of them after the decimal point.
NUMERIC_DEFAULT = (38, 18)
# The scales of quotients in DuckDB: as a rule, and with many or few digits before the decimal point. Other numerics of
# 38 digits rarely have these scales.
QUOTIENT_SCALE = 21
QUOTIENT_SCALES = (19, QUOTIENT_SCALE, 27)
# Fractional digits of a second.
MOMENT_DIGITS_MAX = 6
# A name is truncated to this many bytes.
NAME_BYTES_MAX = 63


# PostgreSQL's numbers of objects that users create, and of array types of such types, begin here.
FIRST_USER_OID = 16384
FIRST_ARRAY_OID = 1 << 30
# Of a value of an enum type, as PostgreSQL stores it.
ENUM_WIDTH = 4
MOMENTS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
# Keys of these kinds are encoded from the values that DuckDB and Arrow return to Python; others from stored values.
ENCODED_AS_GIVEN = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.VARCHAR})


@dataclass(frozen=True, slots=True)
class SqlType:
    """A kind with its modifiers: (precision, scale) of a numeric (0: none), length of a varchar or char (0: none). The
    `scale` of a time is the number of its six fractional digits that are always zero; its `precision` is 6 if that was
    declared, which affects only its name. `enum` is the id of the descriptor of an enum type (0: none). A row stores an
    enum value as a text that never changes, usually its first label (`Value.held`), and so do constants in descriptors:
    renaming a label changes none of them. Expressions see labels. `element` is the type of an array's elements; an
    array has their `enum`."""

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
        """The declared number of fractional digits of a second."""
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
        """The DuckDB type of stored values."""
        if self.element is not None:
            # Arrow has no arrays of its UUID type.
            return "VARCHAR[]" if self.element.kind is Kind.UUID else f"{self.element.stored}[]"
        return NAMES[self.kind].stored or self.duckdb

    @property
    def unmodified(self) -> SqlType:
        """Without modifiers, as for a parameter: they apply when a value is stored, not when it is compared."""
        element = self.element.unmodified if self.element is not None else None
        return SqlType(self.kind, enum=self.enum, element=element)

    @property
    def oid(self) -> int:
        if self.enum:
            return (FIRST_ARRAY_OID if self.element is not None else FIRST_USER_OID) + self.enum
        return NAMES[self.element.kind].array_oid if self.element is not None else NAMES[self.kind].oid

    @property
    def is_key(self) -> bool:
        """Whether values can be looked up and sorted by."""
        return NAMES[self.kind].key


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, enum=element.enum, element=element)


# DuckDB types that no column has, and for a type of several kinds the first: the nearest kind.
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
    """The type for one of DuckDB's; None for those without one, such as that of an untyped NULL.

    >>> str(from_duckdb("DECIMAL(9,2)[]"))
    'numeric(9,2)[]'
    """
    if name.endswith("[]"):
        # An enum's labels are texts where its type is not known.
        element = TEXT if name.startswith("ENUM(") and name.endswith(")[]") else from_duckdb(name[:-2])
        return None if element is None or element.element is not None else array_of(element)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        digits = (int(decimal[1]), int(decimal[2]))
        # A product may have more fractional digits than a numeric without declared ones.
        is_default = digits[0] == NUMERIC_DEFAULT[0] and digits[1] >= NUMERIC_DEFAULT[1]
        return SqlType(Kind.NUMERIC, *(() if is_default else digits))
    if name in _WIDE_INTEGERS:
        return SqlType(Kind.NUMERIC, NUMERIC_PRECISION_MAX)
    kind = _DUCKDB_KINDS.get(name)
    return None if kind is None else SqlType(kind)


def computed_type(name: str) -> SqlType | None:
    """The same for a computed value: the `scale` marks a quotient, which shows trailing zeros."""
    if name.endswith("[]"):
        element = computed_type(name[:-2])
        return from_duckdb(name) if element is None or element.element is not None else array_of(element)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None and int(decimal[1]) == NUMERIC_PRECISION_MAX and int(decimal[2]) in QUOTIENT_SCALES:
        return SqlType(Kind.NUMERIC, scale=int(decimal[2]))
    return from_duckdb(name)


BIGINT = SqlType(Kind.BIGINT)
TEXT = SqlType(Kind.TEXT)

# (from, to) pairs whose values need no rewrite: every old value is a value of the new type, cast on read.
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
        (Kind.CIDR, Kind.INET),
    }
)


def widens(old: SqlType, new: SqlType) -> bool:
    """Whether a column may change from `old` to `new` without rewriting data."""
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
# Assignment casts besides number to number and anything to string.
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
        (Kind.INET, Kind.CIDR),
        (Kind.CIDR, Kind.INET),
        *((kind, Kind.OID) for kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)),
        *((Kind.OID, kind) for kind in (Kind.INTEGER, Kind.BIGINT)),
    }
)


def assignable(old: SqlType, new: SqlType) -> bool:
    """Whether values of `old` are assigned to `new` without an explicit cast; a single value may still be out of
    range."""
    if new.enum or old.enum:
        return (old.enum == new.enum and old.kind is new.kind) or (not new.enum and new.kind in _STRINGS)
    if old.element is not None and new.element is not None:
        return assignable(old.element, new.element)
    if old.kind is new.kind or new.kind in _STRINGS:
        return True
    return (old.kind in _NUMBERS and new.kind in _NUMBERS) or (old.kind, new.kind) in ASSIGNMENTS
