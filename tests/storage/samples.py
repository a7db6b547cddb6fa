"""Types with their values, and segments made of them, for the tests of storage."""

import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from seachange.model.ids import ColumnId, IndexId, LayoutId, SegmentId
from seachange.model.segments import Segment
from seachange.runtime.filesystem import LocalFileSystem
from seachange.storage.arrow import schema_of
from seachange.storage.keys import KeyCodec
from seachange.storage.segment_writer import SegmentShape, SegmentWriter
from seachange.storage.warehouse import Warehouse
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

NUMERIC = SqlType(Kind.NUMERIC, 38, 10)
# Files hold these as integers of four and eight bytes.
NUMERIC_9 = SqlType(Kind.NUMERIC, 9, 2)
NUMERIC_18 = SqlType(Kind.NUMERIC, 18, 2)

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    SqlType(Kind.BOOLEAN): st.booleans(),
    SqlType(Kind.SMALLINT): st.integers(-(2**15), 2**15 - 1),
    SqlType(Kind.INTEGER): st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    SqlType(Kind.REAL): st.floats(width=32),
    SqlType(Kind.DOUBLE): st.floats(),
    NUMERIC: st.decimals(-(10**28) + 1, 10**28 - 1, places=10),
    NUMERIC_9: st.decimals(-(10**7) + 1, 10**7 - 1, places=2),
    NUMERIC_18: st.decimals(-(10**16) + 1, 10**16 - 1, places=2),
    TEXT: st.text(max_size=8) | st.text("\x00\x01a\U0001f600\uffff", max_size=4),
    SqlType(Kind.VARCHAR, length=8): st.text(max_size=8),
    SqlType(Kind.CHAR, length=8): st.text(max_size=8).map(lambda text: text.rstrip(" ")),
    SqlType(Kind.NAME): st.text(max_size=8),
    SqlType(Kind.OID): st.integers(0, 2**32 - 1),
    SqlType(Kind.BYTEA): st.binary(max_size=8) | st.binary(max_size=3).map(lambda b: b.replace(b"a", b"\x00")),
    SqlType(Kind.DATE): st.dates(),
    SqlType(Kind.TIME): st.times(),
    SqlType(Kind.TIMESTAMP): st.datetimes(),
    SqlType(Kind.TIMESTAMPTZ): st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.just(dt.UTC)),
    SqlType(Kind.UUID): st.uuids(),
}
TYPES = tuple(VALUES)


def same(left: Any, right: Any) -> bool:
    """Equality of SQL values: NaN equals NaN, and a type is not mistaken for another."""
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return type(left) is type(right) and bool(left == right)


def some_values(type_: SqlType, count: int) -> list[Any]:
    """Distinct values of a type in order, as many as it has up to `count`."""
    start = dt.datetime(1969, 12, 31, 23, 59)
    made: dict[Kind, Any] = {
        Kind.BOOLEAN: bool,
        Kind.REAL: lambda i: i / 2 - 3,
        Kind.DOUBLE: lambda i: i / 7 - 3,
        Kind.NUMERIC: lambda i: Decimal(i).scaleb(-type_.scale),
        Kind.TEXT: lambda i: f"k{i:05d}",
        Kind.VARCHAR: lambda i: f"k{i:05d}",
        Kind.CHAR: lambda i: f"k{i:05d}",
        Kind.NAME: lambda i: f"k{i:05d}",
        Kind.OID: int,
        Kind.BYTEA: lambda i: i.to_bytes(4, "big"),
        Kind.DATE: lambda i: dt.date(1969, 1, 1) + dt.timedelta(i),
        Kind.TIME: lambda i: (start + dt.timedelta(seconds=i * 3)).time(),
        Kind.TIMESTAMP: lambda i: start + dt.timedelta(microseconds=i),
        Kind.TIMESTAMPTZ: lambda i: (start + dt.timedelta(microseconds=i)).replace(tzinfo=dt.UTC),
        Kind.UUID: lambda i: UUID(int=i << 100),
    }
    make = made.get(type_.kind, lambda i: i - 5)
    codec = KeyCodec([type_])
    values = [make(i) for i in range(2 if type_.kind is Kind.BOOLEAN else count)]
    return sorted(values, key=lambda value: codec.encode((value,)))


class Store:
    """A warehouse in a folder, and a way to put rows into it."""

    def __init__(self, folder: Path) -> None:
        self.files = LocalFileSystem(folder)
        self.warehouse = Warehouse(self.files)
        self._ids = itertools.count(1)

    def reserve(self, count: int) -> list[SegmentId]:
        return [SegmentId(next(self._ids)) for _ in range(count)]

    def shape(self, types: Sequence[SqlType], key: Sequence[int], row_group_rows: int = 64, rows_max: int = 10**6):
        columns = tuple((ColumnId(i + 1), type_) for i, type_ in enumerate(types))
        return SegmentShape(
            columns,
            tuple(ColumnId(i + 1) for i in key),
            IndexId(7),
            LayoutId(3),
            row_group_rows=row_group_rows,
            rows_max=rows_max,
        )

    def write(self, shape: SegmentShape, rows: Sequence[tuple[Any, ...]]) -> list[Segment]:
        """Sorts rows by the shape's key and writes them."""
        return SegmentWriter(self.files, shape, self.reserve).write(table_of(shape, sorted_rows(shape, rows)))

    def reader(self, shape: SegmentShape, segment: Segment):
        types = dict(shape.columns)
        return self.warehouse.reader(segment, tuple((c, types[c]) for c in shape.key))


def key_of(shape: SegmentShape, row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(row[c - 1] for c in shape.key)


def codec_of(shape: SegmentShape) -> KeyCodec:
    types = dict(shape.columns)
    return KeyCodec([types[c] for c in shape.key])


def sorted_rows(shape: SegmentShape, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    codec = codec_of(shape)
    return sorted(rows, key=lambda row: codec.encode(key_of(shape, row)))


def table_of(shape: SegmentShape, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = schema_of(shape.columns)
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table(
        [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
