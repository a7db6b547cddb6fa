"""Streaming of a DuckDB result into a table, as Arrow batches in the types of the table's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.duck.column_values import canonical_array
from seachange.sql.duck.cursor import ZONED
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.port.port import TransactionPort
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import arrow_type, interval_text, write_stored
from seachange.storage.duck_functions import COMPLAIN, PREFIX
from seachange.storage.projection import literal
from seachange.values.canonical import format_canonical
from seachange.values.types import Kind, SqlType

# Up to this many rows go through the transaction's buffer, more are written directly to segments.
ROWS_MAX = 10_000
BATCH_ROWS = 10_240

T = TypeVar("T")


Complete = Callable[[list[pa.Array]], list[pa.Array]]


class ArrowStream:
    """`complete` adds the columns that the query does not compute to a batch."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        schema: pa.Schema,
        types: Sequence[SqlType],
        complete: Complete | None = None,
    ) -> None:
        self._reader = reader
        self._types = types
        self._complete = complete
        self._failure: errors.Error | None = None
        self.schema = schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except OSError as error:
                self._failure = translate_error(error)
                raise self._failure from error
            arrays = [
                canonical_array(_to_arrow(array, field.type), type_)
                for array, field, type_ in zip(batch.columns, self.schema, self._types, strict=True)
            ]
            if self._complete is not None:
                arrays = self._complete(arrays)
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def pass_to(self, take: Callable[[pa.RecordBatchReader], T], first: Sequence[pa.RecordBatch] = ()) -> T:
        """Passes the batches to `take`, after those that were already read. Arrow reports an error of the query as one
        of its own."""
        reader = pa.RecordBatchReader.from_batches(self.schema, chain(first, self.batches()))
        try:
            return take(reader)
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise


def _to_arrow(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type == type_:
        return array
    if isinstance(type_, pa.UuidType):
        return pa.ExtensionArray.from_storage(type_, array.cast(pa.binary(16)))
    return array.cast(type_)


def draw_arrays(
    port: TransactionPort, table: Table, positions: Sequence[int], arrays: list[pa.Array]
) -> list[pa.Array]:
    """The visible columns of rows, with computed defaults at `positions`."""
    completed = list(arrays)
    for position in positions:
        column = table.visible_columns[position]
        completed[position] = pa.array(port.sequences.defaults(column, len(arrays[position])), arrow_type(column.type))
    return completed


# Expressions for the values of a column, in the form that Arrow takes.


def convert_default(column: Column) -> exp.Expr:
    """Of a constant default; computed and generated values are added later."""
    later = is_drawn(column) or column.generated is not None
    return convert_constant(column, None if later else constant_value(column.type, column.default))


def convert_constant(column: Column, value: object) -> exp.Expr:
    """A value of the column's type."""
    text = format_canonical(column.type, value)
    if column.type.element is not None and value is not None:
        return exp.Var(this=write_stored(literal(column.type, value), column.type))
    if column.type.kind is Kind.BYTEA and text is not None:
        return exp.func("unhex", exp.Literal.string(text.removeprefix("\\x")))
    return convert_stored(column, exp.null() if text is None else exp.Literal.string(text))


def convert_given(column: Column, value: exp.Expr, duck_type: str) -> exp.Expr:
    """A value of a query, in DuckDB's type, converted as an assignment to the column converts it."""
    if column.type.kind is Kind.TIME and duck_type == ZONED:
        # The local time of the session.
        value = exp.cast(value, exp.DataType.build("TIMESTAMP"))
    if column.type.kind in (Kind.TEXT, Kind.VARCHAR) and duck_type in ("DOUBLE", "FLOAT"):
        # 1, where DuckDB prints 1.0.
        text = exp.cast(value, exp.DataType.build("TEXT"))
        value = exp.Anonymous(
            this="regexp_replace", expressions=[text, exp.Literal.string(r"\.0$"), exp.Literal.string("")]
        )
    if column.type.kind in (Kind.TEXT, Kind.VARCHAR) and duck_type == "INTERVAL":
        shown = interval_text(value.sql("duckdb"))
        value = exp.Anonymous(this=f"{PREFIX}interval_text", expressions=[exp.Var(this=shown)])
    if column.type.kind in (Kind.TEXT, Kind.VARCHAR) and duck_type == "BIT":
        value = exp.Anonymous(this=f"{PREFIX}network_full_text", expressions=[exp.cast(value, exp.DType.BLOB)])
    converted = convert_stored(column, value)
    return _checked_length(converted, column) if column.type.length else converted


def stored_text(column: Column, name: str) -> str:
    """The text for values of the column's type that a relation has under a name."""
    return convert_stored(column, exp.column(name)).sql("duckdb")


def default_text(column: Column) -> str:
    return convert_default(column).sql("duckdb")


def convert_stored(column: Column, value: exp.Expr) -> exp.Expr:
    """A value that already has the column's type, or its text."""
    converted: exp.Expr = exp.cast(value, exp.DataType.build(column.type.duckdb, dialect="duckdb"))
    if column.type.kind is Kind.UUID:
        # As 16 bytes, for which Arrow has a type whatever DuckDB's settings are.
        text_form = exp.cast(converted, exp.DataType.build("TEXT"))
        return exp.func("unhex", exp.func("replace", text_form, exp.Literal.string("-"), exp.Literal.string("")))
    kind = (column.type.element or column.type).kind
    if kind in (Kind.INET, Kind.CIDR):
        is_list = column.type.element is not None
        addresses = exp.Anonymous(this=f"{PREFIX}{kind.value}{'_list' if is_list else ''}", expressions=[value])
        return exp.cast(addresses, exp.DataType.build("BLOB[]" if is_list else "BLOB", dialect="duckdb"))
    if column.type.stored != column.type.duckdb:
        return exp.Var(this=write_stored(converted.sql("duckdb"), column.type))
    return converted


def _checked_length(value: exp.Expr, column: Column) -> exp.Expr:
    limit = exp.Literal.number(column.type.length)
    trimmed = exp.func("length", exp.func("rtrim", value.copy(), exp.Literal.string(" ")))
    words = exp.Literal.string(f"value too long for type {column.type}")
    complaint = exp.cast(exp.Anonymous(this=COMPLAIN, expressions=[words]), exp.DataType.build("TEXT"))
    return (
        exp.case().when(exp.GT(this=trimmed, expression=limit), complaint).else_(exp.func("left", value, limit.copy()))
    )
