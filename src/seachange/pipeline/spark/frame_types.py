"""The types of columns in Spark: how Spark reads them from segments, and how a DataFrame shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from seachange.values.canonical import format_canonical
from seachange.values.network import show_address, show_network
from seachange.values.types import NAMES, TEXT, Kind, SqlType

# Spark has no UUID type and, unless a session enables it, no time type: these are read as they are stored.
_READ_OTHERWISE = {Kind.TIME: "bigint", **dict.fromkeys((Kind.UUID, Kind.INET, Kind.CIDR), "binary")}
# The labels of enum types by stored value, for each type id.
Labels = Mapping[int, Mapping[str, str]]
# Our text of the bytes of addresses, which no function of Spark makes.
_TEXTS = {Kind.INET: show_address, Kind.CIDR: show_network}


def _text_maker(kind: Kind) -> Callable[[Any], Any]:
    show = _TEXTS[kind]
    # Spark reads the annotations of functions, and takes no partial ones.
    return lambda held: None if held is None else show(bytes(held))


def _texts_maker(kind: Kind) -> Callable[[Any], Any]:
    make = _text_maker(kind)
    return lambda held: None if held is None else [make(each) for each in held]


_TIME_TYPE = "spark.sql.timeType.enabled"
_UUID_GROUPS = "(.{8})(.{4})(.{4})(.{4})(.{12})"
_MIDNIGHT = "1970-01-01 00:00:00"

# Spark's types as DuckDB reads them from the files that Spark writes; `{}` is replaced by the type's arguments.
_WRITTEN: dict[str, str] = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL({})",
    "string": "VARCHAR",
    "char": "VARCHAR",
    "varchar": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "time": "TIME",
    "void": '"NULL"',
}
# In arrays, Spark writes these in a form that depends on its settings, or not at all.
_NOT_IN_ARRAYS = ("DATE", "TIMESTAMP", "TIME", '"NULL"')
_NAME = re.compile(r"(\w+)(?:\((.*)\))?(?: collate .*)?")


def read_type(type_: SqlType) -> str:
    """Spark's name for the type that a stored column is read as."""
    if type_.element is not None:
        return f"array<{read_type(_stored(type_.element))}>"
    precision, scale = type_.digits
    name = _READ_OTHERWISE.get(type_.kind, NAMES[type_.kind].spark.lower())
    return name.format(precision=precision, scale=scale)


def _stored(element: SqlType) -> SqlType:
    """Arrays store UUIDs as text."""
    return TEXT if element.kind is Kind.UUID else element


def shown_type(type_: SqlType, spark: SparkSession) -> str:
    """Spark's name for the type of the column in a DataFrame."""
    return frame_type(type_, has_times(spark))


def frame_type(type_: SqlType, times: bool = False) -> str:
    """The same; `times`: the session has a type for times of day."""
    if type_.element is not None:
        return f"array<{frame_type(type_.element, times)}>"
    if type_.kind is Kind.TIME:
        return "time(6)" if times else "string"
    return "string" if type_.kind is Kind.UUID or type_.kind in _TEXTS else read_type(type_)


def has_times(spark: SparkSession) -> bool:
    return str(spark.conf.get(_TIME_TYPE, "false")).lower() == "true"


def show(column: SparkColumn, old: SqlType, new: SqlType, spark: SparkSession, labels: Labels) -> SparkColumn:
    """Converts a column as it was read, of a type that may have been widened since."""
    if new.element is not None:
        element = _stored(new.element)
        if element.kind in _TEXTS:
            # Spark calls no Python function within its own ones of arrays.
            return F.udf(_texts_maker(element.kind), "array<string>")(column)
        is_shown_as_is = element.kind not in (Kind.TIME, Kind.CHAR) and not element.enum
        return column if is_shown_as_is else F.transform(column, lambda e: show(e, element, element, spark, labels))
    if new.enum:
        return _label(column, labels[new.enum])
    match new.kind:
        case Kind.UUID:
            return F.regexp_replace(F.lower(F.hex(column)), _UUID_GROUPS, "$1-$2-$3-$4-$5")
        case Kind.TIME:
            return F.call_function("time_from_micros", column) if has_times(spark) else _time_text(column)
        case Kind.INET | Kind.CIDR:
            return F.udf(_text_maker(new.kind), "string")(column)
        case Kind.CHAR:
            return F.rpad(column, new.length, " ") if new.length else column
        case _:
            return column if read_type(old) == read_type(new) else column.cast(read_type(new))


def _label(held: SparkColumn, shown: Mapping[str, str]) -> SparkColumn:
    for value, label in shown.items():
        if value != label:
            return F.coalesce(F.create_map(*(F.lit(t) for pair in shown.items() for t in pair))[held], held)
    return held


def _time_text(micros: SparkColumn) -> SparkColumn:
    """The time of day as text, from microseconds since midnight: 08:30:00, 08:30:00.5."""
    seconds = micros.cast("decimal(20,6)") / F.lit(1_000_000)
    moment = F.lit(_MIDNIGHT).cast("timestamp_ntz") + F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), seconds)
    return F.substring(moment.cast("string"), 12, 15)


def frozen(value: Any, type_: SqlType, spark: SparkSession, labels: Labels) -> SparkColumn:
    """The frozen value of a layout, as the DataFrame shows it."""
    shown = shown_type(type_, spark)
    if value is None:
        return F.lit(None).cast(shown)
    if type_.element is not None:
        return F.array(*(frozen(part, _stored(type_.element), spark, labels) for part in value)).cast(shown)
    if isinstance(value, bytes) and type_.kind is Kind.BYTEA:
        return F.lit(bytearray(value)).cast(shown)
    if type_.enum:
        return F.lit(labels[type_.enum].get(value, value))
    text = format_canonical(type_, value) or ""
    return F.lit(text.ljust(type_.length) if type_.kind is Kind.CHAR else text).cast(shown)


_ARROW = {Kind.TIME: pa.int64(), Kind.OID: pa.int64(), Kind.UUID: pa.binary()}


def as_read(column: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    """Values in memory as Spark would read them from a file."""
    if type_.element is not None:
        element = _ARROW.get(_stored(type_.element).kind)
        return column if element is None else column.cast(pa.list_(element))
    if type_.kind is Kind.UUID:
        column = column.cast(pa.binary(16))
    target = _ARROW.get(type_.kind)
    return column if target is None else column.cast(target)


def written_type(spark_type: str) -> str | None:
    """DuckDB's name for the type that Spark writes; None for types that no column has.

    >>> written_type("decimal(10,2)"), written_type("timestamp"), written_type("array<int>"), written_type("map<a,b>")
    ('DECIMAL(10,2)', 'TIMESTAMP WITH TIME ZONE', 'INTEGER[]', None)
    """
    if spark_type.startswith("array<"):
        element = written_type(spark_type[len("array<") : -1])
        return f"{element}[]" if element is not None and not element.startswith(_NOT_IN_ARRAYS) else None
    found = _NAME.fullmatch(spark_type)
    name = None if found is None else _WRITTEN.get(found[1])
    return None if name is None or found is None else name.format(found[2] or "")
