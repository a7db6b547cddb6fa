"""SQL types and index layouts as Arrow types and schemas.

Columns are named by their ids (`c7`) in every file and batch, so that a rename rewrites nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

import pyarrow as pa

from seachange.model.ids import ColumnId
from seachange.values.types import NAMES, Kind, SqlType

OP_COLUMN = "op"
# Above every column id, and below the field ids that Iceberg reserves (2147483447).
ELEMENT_IDS_FROM: Final = 1_000_000_000
_WHOLE_AND_FLOATING: Final = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE)

_PARAMETRIC: dict[Kind, Callable[[SqlType], pa.DataType]] = {
    Kind.NUMERIC: lambda t: pa.decimal128(*t.digits),
    Kind.TIME: lambda _: pa.time64("us"),
    Kind.TIMESTAMP: lambda _: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: lambda _: pa.timestamp("us", tz="UTC"),
}


@cache
def arrow_type(type_: SqlType) -> pa.DataType:
    """The Arrow type of stored values, in memory and in files."""
    if type_.element is not None:
        return pa.list_(pa.string() if type_.element.kind is Kind.UUID else arrow_type(type_.element))
    special = _PARAMETRIC.get(type_.kind)
    if special is not None:
        return special(type_)
    return getattr(pa, NAMES[type_.kind].arrow)()


_NUMBERS: Final = {arrow_type(SqlType(kind)): SqlType(kind) for kind in _WHOLE_AND_FLOATING}


def sql_number(type_: pa.DataType) -> SqlType | None:
    """The SQL type of the numbers in an Arrow array; None if they have none."""
    if pa.types.is_decimal(type_):
        return SqlType(Kind.NUMERIC, type_.precision, type_.scale)
    return _NUMBERS.get(type_)


def column_name(column_id: ColumnId) -> str:
    return f"c{column_id}"


def schema_of(columns: Iterable[tuple[ColumnId, SqlType]]) -> pa.Schema:
    """The schema of a segment with these columns. Field ids make the files readable by other engines by id."""
    return pa.schema([_numbered(column_name(c), _stored_type(c, t), c) for c, t in columns])


def element_id(column_id: ColumnId) -> int:
    """The field id of the elements of an array column."""
    return ELEMENT_IDS_FROM + column_id


def _stored_type(column_id: ColumnId, type_: SqlType) -> pa.DataType:
    found = arrow_type(type_)
    # Readers that resolve columns by id read elements without one as NULL.
    return pa.list_(_numbered("element", found.value_type, element_id(column_id))) if type_.element else found


def _numbered(name: str, type_: pa.DataType, id_: int) -> pa.Field:
    return pa.field(name, type_, metadata={b"PARQUET:field_id": str(id_).encode()})


def read_stored(text: str, type_: SqlType) -> str:
    """DuckDB text for the value of a stored column; a value of the type is accepted too."""
    return text if type_.stored == type_.duckdb else f"CAST({text} AS {type_.duckdb})"


def write_stored(text: str, type_: SqlType) -> str:
    """The inverse: DuckDB text for the stored form of a value; a stored value is accepted too."""
    if type_.element is not None:
        if type_.element.kind is Kind.UUID:
            return f"CAST({text} AS VARCHAR[])"
        if type_.stored == type_.duckdb:
            return text
        if type_.element.kind is Kind.JSONB:
            return f"CAST({text} AS VARCHAR[])"
        return f"list_transform({text}, lambda element: {write_stored('element', type_.element)})"
    match type_.kind:
        case Kind.INTERVAL:
            return interval_text(text)
        case Kind.JSONB:
            return f"CAST({text} AS VARCHAR)"
        case Kind.INET | Kind.CIDR:
            return f"CAST({text} AS BLOB)"
        case _:
            return text


def interval_text(text: str) -> str:
    """The canonical text of an interval, or of a stored one."""
    months = "date_part('year', i) * 12 + date_part('month', i)"
    time = "date_part('hour', i) * 3600000000 + date_part('minute', i) * 60000000 + date_part('microsecond', i)"
    made = f"concat({months}, ' months ', date_part('day', i), ' days ', {time}, ' microseconds')"
    return f"CASE WHEN {text} IS NOT NULL THEN list_transform([CAST({text} AS INTERVAL)], lambda i: {made})[1] END"
