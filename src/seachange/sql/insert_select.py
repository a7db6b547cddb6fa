"""INSERT ... SELECT: DuckDB computes and converts, a few rows go in one by one, many as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.defaults import constant_value
from seachange.model.descriptor import Column, Table
from seachange.model.types import Kind
from seachange.model.values import format_canonical
from seachange.sql.duck import DuckQuery, DuckSession
from seachange.sql.duck_errors import translate_error
from seachange.sql.insert import InsertEnding, check_width, insert_columns
from seachange.sql.operands import check_argument_count
from seachange.sql.plan import is_same_table
from seachange.sql.port import TransactionPort
from seachange.sql.query import bind_query
from seachange.sql.result import Result, Row
from seachange.sql.skip import can_filter, without_conflicts
from seachange.sql.target import Target
from seachange.sql.template import compile_template
from seachange.storage.arrow import arrow_type

# Up to here rows go through the transaction's buffer, above straight into segments.
ROWS_MAX = 10_000
_BATCH_ROWS = 10_240


class InsertSelect:
    def __init__(self, tree: exp.Insert, target: Target, table: Table) -> None:
        self._target = target
        self._table = table
        self._columns, self._listed = insert_columns(tree, table)
        query = tree.expression.copy()
        if tree.args.get("with_") is not None:
            query.set("with_", tree.args["with_"].copy())
        self._template = compile_template(query)
        self._ending = InsertEnding(tree, target, table)
        self._expected = max(max(self._template.parameters, default=0), self._ending.expected)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        source = bind_query(self._template, port, values)
        width = duck.width(source)
        check_width(self._columns, self._listed, width)
        query = DuckQuery(self._convert(source.sql, width), source.parameters, source.relations, source.session_values)
        upsert, returning = self._ending.upsert, self._ending.returning
        if upsert is not None and returning is None and can_filter(upsert, self._table):
            query, upsert = without_conflicts(query, upsert.arbiters[0], port, self._table), None
        with duck.batches(query, _BATCH_ROWS) as reader:
            stream = _Stream(port, self._table, reader)
            if upsert is None and returning is None:
                return stream.insert()
            rows = stream.all_rows()
        return self._ending.insert(port, duck, rows, values)

    def _convert(self, sql: str, width: int) -> str:
        """The query with its columns converted to those of the table, and defaults for the others."""
        names = [f"c{i}" for i in range(width)]
        given = dict(zip((c.name for c in self._columns), names, strict=False))
        expressions = [_conversion(c, given.get(c.name)).as_(c.name, quoted=True) for c in self._table.visible_columns]
        alias = exp.TableAlias(this=exp.to_identifier("source"), columns=[exp.to_identifier(name) for name in names])
        source = exp.Subquery(this=exp.Var(this=sql), alias=alias)
        return exp.Select(expressions=expressions, from_=exp.From(this=source)).sql("duckdb")


def _conversion(column: Column, given: str | None) -> exp.Expr:
    if given is None:
        text = format_canonical(column.type, constant_value(column.type, column.default))
        value: exp.Expr = exp.null() if text is None else exp.Literal.string(text)
        if column.type.kind is Kind.BYTEA and text is not None:
            return exp.func("unhex", exp.Literal.string(text.removeprefix("\\x")))
    else:
        value = exp.column(given)
    converted: exp.Expr = exp.cast(value, exp.DataType.build(column.type.duckdb, dialect="duckdb"))
    if column.type.kind is Kind.UUID:
        # As sixteen bytes, which Arrow has a type for whatever DuckDB's settings are.
        text_form = exp.cast(converted, exp.DataType.build("TEXT"))
        return exp.func("unhex", exp.func("replace", text_form, exp.Literal.string("-"), exp.Literal.string("")))
    if column.type.length:
        return _checked_length(converted, column)
    return converted


def _checked_length(value: exp.Expr, column: Column) -> exp.Expr:
    limit = exp.Literal.number(column.type.length)
    trimmed = exp.func("length", exp.func("rtrim", value.copy(), exp.Literal.string(" ")))
    complaint = exp.func("error", exp.Literal.string(f"value too long for type {column.type}"))
    return (
        exp.case().when(exp.GT(this=trimmed, expression=limit), complaint).else_(exp.func("left", value, limit.copy()))
    )


class _Stream:
    """A DuckDB result on its way into a table."""

    def __init__(self, port: TransactionPort, table: Table, reader: pa.RecordBatchReader) -> None:
        self._port = port
        self._table = table
        self._reader = reader
        self._failure: errors.Error | None = None
        self._schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in table.visible_columns])

    def all_rows(self) -> list[Row]:
        return [row for batch in self._read() for row in self._rows(batch)]

    def insert(self) -> Result:
        first: list[pa.RecordBatch] = []
        batches = self._read()
        for batch in batches:
            first.append(batch)
            if sum(b.num_rows for b in first) > ROWS_MAX:
                return self._insert_stream(first, batches)
        rows = [row for batch in first for row in self._rows(batch)]
        self._port.insert(self._table, rows)
        return Result(f"INSERT 0 {len(rows)}", count=len(rows))

    def _insert_stream(self, first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Result:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from first
            yield from rest

        reader = pa.RecordBatchReader.from_batches(self._schema, batches())
        try:
            count = self._port.insert_arrow(self._table, reader)
        except Exception as error:
            # What went wrong in the query comes back through Arrow as something else.
            if self._failure is not None:
                raise self._failure from error
            raise
        return Result(f"INSERT 0 {count}", count=count)

    def _read(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except OSError as error:
                self._failure = translate_error(error)
                raise self._failure from error
            yield pa.RecordBatch.from_arrays(
                [_to_arrow(array, field.type) for array, field in zip(batch.columns, self._schema, strict=True)],
                schema=self._schema,
            )

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        by_name = dict(zip(batch.schema.names, (column.to_pylist() for column in batch.columns), strict=True))
        nothing = [None] * batch.num_rows
        return zip(*(by_name.get(c.name, nothing) for c in self._table.columns), strict=True)


def _to_arrow(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type == type_:
        return array
    if isinstance(type_, pa.UuidType):
        return pa.ExtensionArray.from_storage(type_, array.cast(pa.binary(16)))
    return array.cast(type_)
