"""The types of columns in Spark: how Spark reads them from segments, and how a DataFrame shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from seachange import errors
from seachange.model.types import Kind, SqlType
from seachange.model.values import format_canonical

# How Spark reads a column. It has no UUIDs and, unless a session asks for it, no times of day: those are read as they
# are stored, and shown as text.
_READ: dict[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.SMALLINT: "smallint",
    Kind.INTEGER: "int",
    Kind.BIGINT: "bigint",
    Kind.REAL: "float",
    Kind.DOUBLE: "double",
    Kind.NUMERIC: "decimal({precision},{scale})",
    Kind.TEXT: "string",
    Kind.VARCHAR: "string",
    Kind.NAME: "string",
    Kind.JSON: "string",
    Kind.JSONB: "string",
    Kind.BYTEA: "binary",
    Kind.DATE: "date",
    Kind.TIME: "bigint",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
    Kind.UUID: "binary",
}
_SHOWN_AS_TEXT = frozenset({Kind.TIME, Kind.UUID})
_TIME_TYPE = "spark.sql.timeType.enabled"
_UUID_GROUPS = "(.{8})(.{4})(.{4})(.{4})(.{12})"
_MIDNIGHT = "1970-01-01 00:00:00"

# Spark's types as DuckDB reads them from the files that Spark writes; `{}` holds what is in brackets.
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
_NAME = re.compile(r"(\w+)(?:\((.*)\))?(?: collate .*)?")


def read_type(type_: SqlType) -> str:
    """Spark's name for the type that a stored column is read as."""
    name = _READ.get(type_.kind)
    if name is None or type_.enum:
        raise errors.FeatureNotSupported(
            feature=f"a column of type {type_} in a DataFrame", instead="Leave it out by a view, or cast it to text."
        )
    precision, scale = type_.digits
    return name.format(precision=precision, scale=scale)


def shown_type(type_: SqlType, spark: SparkSession) -> str:
    """Spark's name for the type that a DataFrame has the column in."""
    if type_.kind is Kind.TIME and has_times(spark):
        return "time(6)"
    return "string" if type_.kind in _SHOWN_AS_TEXT else read_type(type_)


def has_times(spark: SparkSession) -> bool:
    return str(spark.conf.get(_TIME_TYPE, "false")).lower() == "true"


def show(column: SparkColumn, old: SqlType, new: SqlType, spark: SparkSession) -> SparkColumn:
    """A column as it was read, of a type that may have been widened since."""
    if new.kind is Kind.UUID:
        return F.regexp_replace(F.lower(F.hex(column)), _UUID_GROUPS, "$1-$2-$3-$4-$5")
    if new.kind is Kind.TIME:
        if has_times(spark):
            return F.call_function("time_from_micros", column)
        return _time_text(column)
    return column if read_type(old) == read_type(new) else column.cast(read_type(new))


def _time_text(micros: SparkColumn) -> SparkColumn:
    """What a clock shows so long after midnight: 08:30:00, 08:30:00.5."""
    seconds = micros.cast("decimal(20,6)") / F.lit(1_000_000)
    moment = F.lit(_MIDNIGHT).cast("timestamp_ntz") + F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), seconds)
    return F.substring(moment.cast("string"), 12, 15)


def frozen(value: Any, type_: SqlType, spark: SparkSession) -> SparkColumn:
    """A value that all rows of a layout have, as the DataFrame shows it."""
    shown = shown_type(type_, spark)
    if value is None or isinstance(value, bytes):
        return F.lit(value if value is None else bytearray(value)).cast(shown)
    return F.lit(format_canonical(type_, value)).cast(shown)


_ARROW: dict[Kind, Callable[[pa.ChunkedArray], pa.ChunkedArray]] = {
    Kind.TIME: lambda column: column.cast(pa.int64()),
    Kind.UUID: lambda column: column.cast(pa.binary(16)).cast(pa.binary()),
}


def as_read(column: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    """Values in memory as Spark would read them from a file."""
    convert = _ARROW.get(type_.kind)
    return column if convert is None else convert(column)


def written_type(spark_type: str) -> str | None:
    """DuckDB's name for what Spark writes; None for types that no column has.

    >>> written_type("decimal(10,2)"), written_type("timestamp"), written_type("array<int>")
    ('DECIMAL(10,2)', 'TIMESTAMP WITH TIME ZONE', None)
    """
    found = _NAME.fullmatch(spark_type)
    name = None if found is None else _WRITTEN.get(found[1])
    return None if name is None or found is None else name.format(found[2] or "")
