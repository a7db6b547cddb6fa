"""SQL types and index layouts as Arrow types and schemas.

Columns are called after their ids (`c7`) in every file and batch, so that a rename moves no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import pyarrow as pa

from seachange.model.ids import ColumnId
from seachange.model.types import NAMES, Kind, SqlType

OP_COLUMN = "op"

_PARAMETRIC: dict[Kind, Callable[[SqlType], pa.DataType]] = {
    Kind.NUMERIC: lambda t: pa.decimal128(t.precision, t.scale),
    Kind.TIME: lambda _: pa.time64("us"),
    Kind.TIMESTAMP: lambda _: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: lambda _: pa.timestamp("us", tz="UTC"),
}


@cache
def arrow_type(type_: SqlType) -> pa.DataType:
    special = _PARAMETRIC.get(type_.kind)
    if special is not None:
        return special(type_)
    return getattr(pa, NAMES[type_.kind].arrow)()


def column_name(column_id: ColumnId) -> str:
    return f"c{column_id}"


def schema_of(columns: Iterable[tuple[ColumnId, SqlType]]) -> pa.Schema:
    """The schema of a segment with these columns. Field ids make the files readable by other engines by id."""
    return pa.schema(
        [pa.field(column_name(c), arrow_type(t), metadata={b"PARQUET:field_id": str(c).encode()}) for c, t in columns]
    )
