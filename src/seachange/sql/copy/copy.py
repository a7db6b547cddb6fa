"""COPY: a file into a table, a query into a file, in bounded memory; all of a file or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.target import find_column, missing_values
from seachange.sql.copy.copy_binary import read_binary_records
from seachange.sql.copy.copy_blocks import BLOCK_CHARS, Resumed, read_block, read_columns
from seachange.sql.copy.copy_text import CopyFormat, format_record, read_records
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.parsing.parse import TreeStatement
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Row
from seachange.sql.query.databases import check_named_databases
from seachange.sql.query.query import bind_query, check_parameter_count
from seachange.sql.query.result_columns import column_types, result_names
from seachange.sql.translate.duck_errors import translate_error
from seachange.sql.write.dml import compile_select
from seachange.storage.arrow import arrow_type, write_stored
from seachange.values.binary_form import decode_binary
from seachange.values.coercion import coercer
from seachange.values.output_format import show_held
from seachange.values.timezone import session_zone
from seachange.values.types import Kind, SqlType, computed_type

# Up to this many rows go through the transaction's buffer, more are written directly to segments.
ROWS_MAX = 10_000
_BATCH_ROWS = 10_240


class CopyIn:
    """One COPY FROM into a table."""

    def __init__(self, port: TransactionPort, table: Table, columns: Sequence[str] | None, format_: CopyFormat) -> None:
        self._port = port
        self._table = table
        self._format = format_
        self._columns = _copied_columns(table, columns)
        make = _binary_reader if format_.binary else coercer
        self._readers = [(column, make(column.type)) for column in self._columns]
        self._schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in table.visible_columns])
        self._failure: errors.Error | None = None

    @property
    def width(self) -> int:
        """The number of fields of a record."""
        return len(self._columns)

    def run(self, file: TextIO | BinaryIO) -> int:
        """The file is binary if the format is."""
        self._port.rights.check_access(self._table, "INSERT")
        self._port.locks.begin_write(self._table, reads=False)
        if self._format.binary:
            records: Iterator[tuple[int, Sequence[Any]]] = read_binary_records(cast(BinaryIO, file))
        else:
            file = cast(TextIO, file)
            begun = read_block(file, lines=0)
            if len(begun) >= BLOCK_CHARS:
                return self._insert(self._blocks(begun, file))
            records = read_records(Resumed(begun, file), self._format)
        rows = self._rows(records)
        first = list(islice(rows, ROWS_MAX + 1))
        if len(first) > ROWS_MAX:
            return self._insert(self._batches(chain(first, rows)))
        self._port.writes.insert(self._table, self._whole_rows(first))
        return len(first)

    def _insert(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Loads more rows than a transaction buffers."""
        reader = pa.RecordBatchReader.from_batches(self._schema, batches)
        try:
            return self._port.writes.insert_arrow(self._table, reader)
        except Exception as error:
            # Arrow reports an error of the file as one of its own.
            if self._failure is not None:
                raise self._failure from error
            raise

    def _blocks(self, text: str, file: TextIO) -> Iterator[pa.RecordBatch]:
        """As columns, as long as that certainly gives the same values as reading records."""
        format_, lines = self._format, 0
        types = [column.type for column in self._columns]
        header, newline, behind = text.partition("\n")
        if format_.header and newline and '"' not in header:
            format_, lines, text = replace(format_, header=False), 1, behind
        try:
            while text:
                end = text.rfind("\n") + 1
                # A quoted header is read as a record.
                columns = read_columns(text[:end], format_, types) if end and not format_.header else None
                if columns is None:
                    records = read_records(Resumed(text, file), format_, lines)
                    yield from self._batches(self._rows(records))
                    return
                self._port.statement.pause(0)
                yield self._batch(columns, len(columns[0]))
                lines += text.count("\n", 0, end)
                text = text[end:] + read_block(file, lines)
        except errors.Error as error:
            self._failure = error
            raise

    def _rows(self, records: Iterator[tuple[int, Sequence[Any]]]) -> Iterator[Row]:
        try:
            for line, fields in self._port.statement.each(records):
                yield self._convert(line, fields)
        except errors.Error as error:
            self._failure = error
            raise

    def _convert(self, line: int, fields: Sequence[Any]) -> Row:
        if len(fields) > len(self._readers):
            raise errors.BadCopyFormat(line=line, detail="extra data after last expected column")
        if len(fields) < len(self._readers):
            missing = self._readers[len(fields)][0].name
            raise errors.BadCopyFormat(line=line, detail=f'missing data for column "{missing}"')
        values = []
        for field, (column, read) in zip(fields, self._readers, strict=True):
            try:
                values.append(read(field))
            except errors.DataError as error:
                error.args = (f'{error} (COPY {self._table.name}, line {line}, column "{column.name}")',)
                raise
        return tuple(values)

    def _whole_rows(self, rows: list[Row]) -> list[Row]:
        given = dict(zip((c.id for c in self._columns), zip(*rows, strict=True), strict=True)) if rows else {}
        columns = [given.get(c.id) or missing_values(self._port.sequences, c, len(rows)) for c in self._table.columns]
        return list(zip(*columns, strict=True))

    def _batches(self, rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        while batch := list(islice(rows, _BATCH_ROWS)):
            columns = zip(*batch, strict=True)
            arrays = [pa.array(values, arrow_type(c.type)) for c, values in zip(self._columns, columns, strict=True)]
            yield self._batch(arrays, len(batch))

    def _batch(self, columns: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
        given = dict(zip((c.name for c in self._columns), columns, strict=True))
        arrays = [
            given[c.name]
            if c.name in given
            else pa.array(missing_values(self._port.sequences, c, rows), arrow_type(c.type))
            for c in self._table.visible_columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _binary_reader(type_: SqlType) -> Callable[[Any], Any]:
    read = coercer(type_)
    return lambda data: None if data is None else read(decode_binary(type_, data))


def _copied_columns(table: Table, names: Sequence[str] | None) -> list[Column]:
    """The columns of the file: without a list, all that accept values."""
    if names is None:
        return [column for column in table.visible_columns if column.generated is None]
    found = [find_column(table, name) for name in names]
    for column in found:
        if column.generated is not None:
            raise errors.InvalidColumnReference(
                detail=f'column "{column.name}" is a generated column: COPY cannot use it'
            )
    return found


def copy_out(
    statement: TreeStatement,
    port: TransactionPort,
    duck: DuckSession,
    values: Sequence[Any],
    file: TextIO,
    format_: CopyFormat,
) -> int:
    """Writes the rows of a query and returns their number."""
    check_named_databases(statement, port)
    template = compile_select(statement.tree, port)
    check_parameter_count(template, values)
    query = bind_query(template, port, values)
    names, types = duck.describe(query)
    if format_.header:
        file.write(format_record(result_names(template, names), format_))
    count = 0
    places = [f"c{i}" for i in range(len(types))]
    own = [
        of_column or computed_type(type_) for of_column, type_ in zip(column_types(template, types), types, strict=True)
    ]
    columns = [shown(place, type_, session_zone()) for place, type_ in zip(places, own, strict=True)]
    with duck.batches(_as_text(query, columns, places), _BATCH_ROWS) as reader:
        for batch in _reading(reader):
            file.writelines(format_record(record, format_) for record in _records(batch, columns))
            count += batch.num_rows
    return count


def _reading(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            raise translate_error(error) from error
        yield batch


def _as_text(query: DuckQuery, columns: Sequence[Shown], names: Sequence[str]) -> DuckQuery:
    texts = ", ".join(column.sql for column in columns)
    return replace(query, sql=f"SELECT {texts} FROM ({query.sql}) AS shown({', '.join(names)})")  # noqa: S608 - generated


def _records(batch: pa.RecordBatch, columns: Sequence[Shown]) -> Iterator[tuple[str | None, ...]]:
    values = [array.to_pylist() for array in batch.columns]
    for place, column in enumerate(columns):
        if column.show is not None:
            values[place] = [column.show(value) for value in values[place]]
    return zip(*values, strict=True)


# COPY TO output: values as PostgreSQL prints them, by DuckDB where it prints the same, otherwise one by one.
@dataclass(frozen=True, slots=True)
class Shown:
    """DuckDB text for a column, and the conversion that is left to do."""

    sql: str
    show: Callable[[Any], str | None] | None = None


def shown(name: str, type_: SqlType | None, zone: str) -> Shown:
    """`type_` is None for a value that has none of our types."""
    if type_ is None:
        return Shown(f"CAST({name} AS VARCHAR)")
    if type_.element is not None or type_.kind in (Kind.INTERVAL, Kind.REAL, Kind.DOUBLE, Kind.INET, Kind.CIDR):
        return Shown(write_stored(name, type_), _shower(type_, zone))
    return Shown(_shown_by_duckdb(name, type_))


def _shower(type_: SqlType, zone: str) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else show_held(type_, value, zone)


def _shown_by_duckdb(name: str, type_: SqlType) -> str:
    text = f"CAST({name} AS VARCHAR)"
    match type_.kind:
        case Kind.BOOLEAN:
            return f"CASE WHEN {name} THEN 't' WHEN NOT {name} THEN 'f' END"
        case Kind.BYTEA:
            return f"'\\x' || lower(hex({name}))"
        case Kind.CHAR:
            return f"rpad({text}, greatest({type_.length}, length({text}))::INTEGER, ' ')"
        case Kind.NUMERIC if not type_.precision:
            # It has 18 digits after the decimal point; trailing zeros are not shown.
            return f"rtrim(rtrim({text}, '0'), '.')"
        case _:
            return text
