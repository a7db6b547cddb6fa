"""Sorts rows into segments, in bounded memory.

DuckDB sorts, spilling if necessary, and streams. Duplicates are found between neighbours of the stream; segments are
written while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.segments import Segment
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import FileSystem
from seachange.storage.arrow import column_name, schema_of, write_stored
from seachange.storage.keys import Key
from seachange.storage.row_groups import comparable
from seachange.storage.segment_writer import Reserve, SegmentShape, SegmentWriter
from seachange.storage.spill import sorting
from seachange.values.types import Kind, SqlType

# Rows per Arrow batch of the sorted stream: a quarter of a row group, so that wide text stays below Arrow's 2 GB.
_BATCH_ROWS = 10_240


@dataclass(frozen=True, slots=True)
class Distinct:
    """Leading key columns that must be unique; `duplicate` creates the error for the first duplicate. Unless
    `nulls_distinct`, NULL equals NULL."""

    columns: Sequence[ColumnId]
    duplicate: Callable[[Key], Exception]
    nulls_distinct: bool = True


def repeated_keys(rows: str, unique: Distinct) -> str:
    """A query for a key that several rows of a query have."""
    names = [column_name(c) for c in unique.columns]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names) if unique.nulls_distinct else "true"
    listed = ", ".join(names)
    return f"SELECT {listed} FROM ({rows}) WHERE {present} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"  # noqa: S608


def sort_into_segments(
    connection: duckdb.DuckDBPyConnection,
    source: pa.RecordBatchReader | pa.Table,
    shape: SegmentShape,
    files: FileSystem,
    reserve: Reserve,
    unique: Distinct | None = None,
) -> list[Segment]:
    """Sorts `source`, whose columns are named by their ids, by the shape's key and writes it. Exceptions of the source
    are passed on unchanged."""
    with guarded(source) as reader:
        rows = connection.from_arrow(reader).project(_outputs(shape)).order(_order(shape))
        return _write(rows, shape, files, reserve, unique)


@contextmanager
def guarded(source: pa.RecordBatchReader | pa.Table) -> Iterator[pa.RecordBatchReader]:
    """Passes on exceptions of the source, of which DuckDB keeps only the text."""
    remembering = _GuardedSource(source)
    try:
        yield remembering.reader
    except (duckdb.Error, errors.Error) as problem:
        if remembering.problem is not None:
            raise remembering.problem from problem
        raise


def sort_query_into_segments(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Any,
    shape: SegmentShape,
    files: FileSystem,
    reserve: Reserve,
    unique: Distinct | None = None,
) -> list[Segment]:
    """The same for a query, such as one over segments that were just written."""
    # As one text: DuckDB would materialise the result of a parameterised query before reading from it.
    return _write(connection.sql(in_order(sql, shape), params=parameters), shape, files, reserve, unique)


def in_order(sql: str, shape: SegmentShape) -> str:
    """The columns of a segment, in key order, from a query for them."""
    return f"SELECT {_outputs(shape)} FROM ({sql}) ORDER BY {_order(shape)}"  # noqa: S608 - columns are named by id


def _outputs(shape: SegmentShape) -> str:
    return ", ".join(map(stored_output, shape.columns))


def _order(shape: SegmentShape) -> str:
    return ", ".join(f"{column_name(c)} ASC NULLS LAST" for c in shape.key)


def _write(
    rows: duckdb.DuckDBPyRelation,
    shape: SegmentShape,
    files: FileSystem,
    reserve: Reserve,
    unique: Distinct | None,
) -> list[Segment]:
    with sorting():
        # The reader is available when everything is sorted; what follows is only merging and streaming.
        stream = rows.to_arrow_reader(_BATCH_ROWS)
        reach("bulk.sorted")
        batches = _typed(stream, schema_of(shape.columns))
        if unique is not None:
            batches = distinct_neighbours(batches, unique)
        return SegmentWriter(files, shape, reserve).write(batches)


def stored_output(column: tuple[ColumnId, SqlType]) -> str:
    """A column in its stored form. DuckDB returns a UUID to Arrow as text, unless its bytes are requested; both have
    the same order."""
    name = column_name(column[0])
    if column[1].kind is Kind.UUID:
        return f"CAST({name} AS BLOB) AS {name}"
    value = write_stored(name, column[1])
    return name if value == name else f"{value} AS {name}"


def _typed(batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches in the types of segments, from which DuckDB's differ in time zone names and UUIDs."""
    for batch in batches:
        yield as_stored(batch, schema)


def as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema, in its types."""
    columns = [_cast(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, column.cast(type_.storage_type))
    return column if column.type == type_ else column.cast(type_)


def distinct_neighbours(batches: Iterator[pa.RecordBatch], unique: Distinct) -> Iterator[pa.RecordBatch]:
    """Passes sorted batches through, up to the first row whose values in these columns equal those of the row
    before."""
    names = [column_name(c) for c in unique.columns]
    last: list[pa.Array] | None = None
    for batch in batches:
        columns = [batch.column(name) for name in names]
        joined = [pa.concat_arrays(pair) for pair in zip(last, columns, strict=True)] if last else columns
        same = equal_neighbours([comparable(column) for column in joined], unique.nulls_distinct)
        repeated = pc.index(same, True).as_py()
        if repeated >= 0:
            raise unique.duplicate(tuple([column[repeated].as_py() for column in joined]))
        yield batch
        last = [column.slice(len(column) - 1) for column in columns]


def equal_neighbours(columns: Sequence[pa.Array], nulls_distinct: bool) -> pa.Array:
    equal = None
    for column in columns:
        before, after = column.slice(0, max(len(column) - 1, 0)), column.slice(1)
        same = pc.equal(before, after)
        if pa.types.is_floating(column.type):
            same = pc.or_(same, pc.and_(pc.is_nan(before), pc.is_nan(after)))
        if not nulls_distinct:
            same = pc.or_(pc.fill_null(same, False), pc.and_(pc.is_null(before), pc.is_null(after)))
        equal = same if equal is None else pc.and_(equal, same)
    return equal


class _GuardedSource:
    """A source that keeps its exception, since DuckDB keeps only the text."""

    def __init__(self, source: pa.RecordBatchReader | pa.Table) -> None:
        self.problem: BaseException | None = None
        batches = source.to_batches() if isinstance(source, pa.Table) else source
        self.reader = pa.RecordBatchReader.from_batches(source.schema, self._remembering(batches))

    def _remembering(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as problem:
            self.problem = problem
            raise
