"""Column statistics of a data file, from its Parquet footer: readers of Iceberg skip files by them.

**Invariant:** a bound has the form of the column's current type. When a column has been widened, the bounds of older
files are left out, because not every reader accepts the shorter form.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow.parquet as pq

from seachange.model.schema.descriptor import Column, Table
from seachange.storage.arrow import column_name
from seachange.values.types import Kind

# Longer texts have no bounds: metadata would grow with the data.
_BYTES_MAX: Final = 64
_NUMBERS: Final[dict[str, str]] = {"int": "<i", "long": "<q", "float": "<f", "double": "<d"}
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

Counts = tuple[tuple[int, int], ...]
Bounds = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """Each by the ids of columns. Both bounds of a column are there, or none."""

    values: Counts = ()
    nulls: Counts = ()
    lower: Bounds = ()
    upper: Bounds = ()

    def without_bounds(self, ids: Set[int]) -> FileStatistics:
        if ids.isdisjoint(id_ for id_, _ in self.lower):
            return self
        lower = tuple(bound for bound in self.lower if bound[0] not in ids)
        upper = tuple(bound for bound in self.upper if bound[0] not in ids)
        return FileStatistics(self.values, self.nulls, lower, upper)


NO_STATISTICS: Final = FileStatistics()


def read_statistics(footer: pq.FileMetaData, table: Table, fields: Sequence[Mapping[str, Any]]) -> FileStatistics:
    """Of the table's visible columns; `fields` are those of its schema."""
    types = {field["id"]: field["type"] for field in fields}
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    values, nulls, lower, upper = [], [], [], []
    for column in table.visible_columns:
        place = places.get(column_name(column.id))
        if place is None:
            continue
        found = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if not all(each is not None and each.has_null_count for each in found):
            continue
        null_count = sum(each.null_count for each in found)
        values.append((column.id, footer.num_rows))
        nulls.append((column.id, null_count))
        bounds = _bounds(column, types[column.id], [each for each in found if each.num_values])
        if bounds is not None:
            lower.append((column.id, bounds[0]))
            upper.append((column.id, bounds[1]))
    return FileStatistics(tuple(values), tuple(nulls), tuple(lower), tuple(upper))


def _bounds(column: Column, type_: Any, found: Sequence[Any]) -> tuple[bytes, bytes] | None:
    if not found or not all(each.has_min_max for each in found):
        return None
    least = encode_bound(column, type_, min(each.min for each in found))
    most = encode_bound(column, type_, max(each.max for each in found))
    return None if least is None or most is None else (least, most)


def encode_bound(column: Column, type_: Any, value: Any) -> bytes | None:
    """Iceberg's binary form of one value; None if it has none here."""
    if type_ in _NUMBERS:
        return struct.pack(_NUMBERS[type_], value)
    if column.type.kind is Kind.BOOLEAN:
        return bytes([value])
    encoded: bytes | None = None
    match value:
        case Decimal():
            unscaled = int(value.scaleb(column.type.digits[1]))
            encoded = unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True)
        case dt.datetime():
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            encoded = struct.pack("<q", (naive - _EPOCH) // _MICROSECOND)
        case dt.date():
            encoded = struct.pack("<i", (value - _EPOCH.date()).days)
        case dt.time():
            since = dt.datetime.combine(_EPOCH, value) - _EPOCH
            encoded = struct.pack("<q", since // _MICROSECOND)
        case str():
            encoded = value.encode()
        case bytes():
            encoded = value
        case _:
            pass
    return encoded if encoded is not None and len(encoded) <= _BYTES_MAX else None
