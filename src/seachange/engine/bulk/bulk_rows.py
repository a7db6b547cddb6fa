"""The rows of a bulk insert as the primary index stores them; runs in the engine and in Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seachange import errors
from seachange.engine.buffer.row_writer import duplicate_key
from seachange.engine.constraints.computed_values import Filler
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column
from seachange.sql.duck.default_text import is_drawn
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.bulk import Distinct


class Supply(Protocol):
    """The source of values that the rows do not contain."""

    def rowids(self, count: int) -> int:
        """Reserves `count` consecutive hidden keys; returns the first."""

    def defaults(self, column: Column, count: int) -> Sequence[Any]:
        """Values of a default that is an expression."""


def distinct_of(plan: WritePlan, entry: EntryPlan) -> Distinct | None:
    """The leading key columns of an index that must be unique within the load; None if it is not unique."""
    return unique_of(plan, entry) if entry.checks else None


def unique_of(plan: WritePlan, entry: EntryPlan) -> Distinct | None:
    """The same, also for an index whose duplicates are recorded."""
    width = (0 if plan.has_hidden_key else entry.key_width) if entry.is_primary else entry.unique_width
    if not width or not entry.looks_for_duplicates:
        return None
    columns = tuple(c for c, _ in entry.columns[:width])
    return Distinct(columns, lambda key: duplicate_key(plan.table, entry, key), entry.index.nulls_distinct)


class BulkRows:
    """Converts a stream of rows: columns by id, hidden row ids and computed columns filled in, NULLs checked."""

    def __init__(self, plan: WritePlan, supply: Supply, filler: Filler | None, check: Callable[[], None]) -> None:
        """`check` is called for each batch, and may raise."""
        self._plan = plan
        self._supply = supply
        self._filler = filler
        self._check = check
        self._required = {column for _, column in plan.required}
        self.count = 0

    def stored(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        schema = pa.schema([(column_name(c), arrow_type(t)) for c, t in self._plan.primary.columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(rows, schema))

    def _batches(self, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        table = self._plan.table
        given = {column_name(c.id): i for i, c in enumerate(table.visible_columns)}
        by_name = {column_name(c.id): c for c in table.columns}
        for batch in rows:
            self._check()
            columns = []
            for field in schema:
                column = by_name[field.name]
                array = (
                    batch.column(given[field.name]) if field.name in given else self._missing(column, batch.num_rows)
                )
                columns.append(array if array.type == field.type else array.cast(field.type))
            columns = self._filled(schema, columns)
            for field, array in zip(schema, columns, strict=True):
                self._check_nulls(by_name[field.name], array, schema, columns)
            self.count += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _missing(self, column: Column, count: int) -> pa.Array:
        """Values of columns that the load cannot contain: the hidden key, and columns that are not public yet."""
        if column.hidden:
            first = self._supply.rowids(count)
            return pa.array(np.arange(first, first + count, dtype=np.int64))
        if is_drawn(column) and column.conversion is None:
            return pa.array(self._supply.defaults(column, count), arrow_type(column.type))
        value = constant_value(column.type, None if column.conversion or column.generated else column.default)
        return pa.array([value] * count, arrow_type(column.type))

    def _filled(self, schema: pa.Schema, columns: list[pa.Array]) -> list[pa.Array]:
        if self._filler is None:
            return columns
        given = dict(zip(schema.names, columns, strict=True))
        return list((given | self._filler.values(given, column_name, recorded=True)).values())

    def _check_nulls(self, column: Column, array: pa.Array, schema: pa.Schema, columns: Sequence[pa.Array]) -> None:
        if column not in self._required or not array.null_count:
            return
        place = pc.index(pc.is_null(array), True).as_py()
        by_name = dict(zip(schema.names, columns, strict=True))
        visible = [by_name[column_name(c.id)][place].as_py() for c in self._plan.table.visible_columns]
        shown = ", ".join("null" if value is None else str(value) for value in visible)
        problem = errors.NotNullViolation(column=column.name, relation=self._plan.table.name)
        raise problem.located(f"failing row contains ({shown})")
