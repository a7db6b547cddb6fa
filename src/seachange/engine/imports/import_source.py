"""What is imported: Parquet files with the same columns, described in DuckDB's types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from glob import escape

import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.engine.dataframes.file_insert import RowFile
from seachange.model.statements import ColumnDefinition, CreateTable, ImportTable, KeyDefinition
from seachange.sql.copy.frame_load import FILES, FrameColumn
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.values.types import SqlType, from_duckdb

# The finest moments are microseconds; the only unsigned integers are object ids.
_READ_AS = {
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "UINTEGER": "BIGINT",
    "UINTEGER[]": "BIGINT[]",
}
_DESCRIBED = f"SELECT * FROM read_parquet(${FILES})"  # noqa: S608 - a parameter


@dataclass(frozen=True, slots=True)
class ImportSource:
    """`named` is the source as the statement names it; `sample` a file with the columns, which may have no rows. `key`
    and `required` are those of an Iceberg table."""

    named: str
    sample: str
    files: tuple[RowFile, ...]
    key: tuple[str, ...] = ()
    required: frozenset[str] = field(default_factory=frozenset)
    # Whether the files are those of the user.
    shows_files: bool = False

    def describe(self, duck: DuckSession) -> list[FrameColumn]:
        query = DuckQuery(_DESCRIBED, {FILES: [escape(self.sample)]}, {})
        names, types = duck.describe(query)
        return [FrameColumn(name, type_.lower(), type_) for name, type_ in zip(names, types, strict=True)]

    def definition(self, statement: ImportTable, columns: Sequence[FrameColumn]) -> CreateTable:
        """The table that has these columns."""
        key = self.key if statement.key is None else statement.key
        needed = self.required.union(key)
        made = tuple(ColumnDefinition(c.name, self._type(c), nullable=c.name not in needed) for c in columns)
        return CreateTable(statement.table, made, KeyDefinition(key, primary=True) if key else None)

    def _type(self, column: FrameColumn) -> SqlType:
        duck_type = column.duck_type or ""
        found = from_duckdb(_READ_AS.get(duck_type, duck_type))
        if found is None:
            raise errors.FeatureNotSupported(
                feature=f'column "{column.name}" of type {column.spark_type} in "{self.named}"',
                instead="Create the table with a column of another type, or leave the column out of the source.",
            )
        return found


def parquet_source(named: str, paths: Sequence[str]) -> ImportSource:
    """All files have the columns of the first one."""
    schema: pa.Schema | None = None
    files = []
    for path in paths:
        metadata = _read_footer(path)
        found = metadata.schema.to_arrow_schema()
        if schema is None:
            schema = found
            _check_schema(path, schema)
        _check_columns(path, found, paths[0], schema)
        if metadata.num_rows:
            files.append(RowFile(path, metadata.num_rows, os.path.getsize(path)))
    return ImportSource(named, paths[0], tuple(files), shows_files=True)


def _read_footer(path: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except OSError as problem:
        raise errors.InputOutputError(action="read", file=path, detail=problem.strerror or problem) from problem
    except pa.ArrowException as problem:
        raise errors.ImportFailed(source=path, detail=str(problem)) from problem


def _check_schema(path: str, schema: pa.Schema) -> None:
    """What the reader would rename or round without an error."""
    for number, column in enumerate(schema):
        if column.name in schema.names[:number]:
            raise errors.ImportFailed(source=path, detail=f'it has more than one column "{column.name}"')
        if pa.types.is_decimal256(column.type):
            detail = f'column "{column.name}" is of type {column.type}: more than 38 digits cannot be read'
            raise errors.ImportFailed(source=path, detail=detail)


def _check_columns(path: str, found: pa.Schema, first: str, wanted: pa.Schema) -> None:
    for name in sorted({*found.names} ^ {*wanted.names}):
        lacks, has = (path, first) if name in wanted.names else (first, path)
        raise errors.ImportFailed(source=lacks, detail=f'there is no column "{name}", which "{has}" has')
    for name in wanted.names:
        types = found.field(name).type, wanted.field(name).type
        if types[0] != types[1]:
            detail = f'column "{name}" is of type {types[0]}, and of type {types[1]} in "{first}"'
            raise errors.ImportFailed(source=path, detail=detail)
