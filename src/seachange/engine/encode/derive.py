"""Derived rows: a row with its computed columns, and its membership in partial indexes.

**Invariant:** a derived row has the values of converted, generated and virtual columns in their places, and after all
columns, for each partial index in order, the value of its predicate (True, False or None). Deriving a row twice changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.pipeline.kernels.row_names import naming_columns, show_key
from seachange.sql.duck.check_closure import Evaluate, Undecided, compile_value
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import schema_of
from seachange.storage.duck import Duck
from seachange.storage.entries import as_value
from seachange.storage.small_arrays import array_of
from seachange.values.coercion import coercer
from seachange.values.types import Kind, SqlType

Row = tuple[Any, ...]
Failures = dict[ColumnId, errors.Error]
_BOOLEAN = SqlType(Kind.BOOLEAN)
# Classes of errors that are not caused by the value: out of memory, cancelled, I/O error.
_PASSING = frozenset({"53", "57", "58"})


@dataclass(frozen=True, slots=True)
class _Item:
    """One computed value: its position in the row, and its compiled Python form if it has one. For a `converted`
    column, or a generated one that is not public yet, the value may be missing, or NULL although `required`: then the
    schema change fails, not the writer."""

    position: int
    expression: Expression
    type: SqlType
    evaluate: Evaluate | None
    coerce: Callable[[Any], Any]
    converted: Column | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    table: Table
    items: tuple[_Item, ...]

    @property
    def fills(self) -> bool:
        """Whether it computes columns that are stored with the rows."""
        width = len(self.table.columns)
        return any(i.position < width and not self.table.columns[i.position].virtual for i in self.items)

    def derive(self, rows: Sequence[Row], duck: Duck, failed: Failures | None = None) -> list[Row]:
        """`failed` receives the error of each converted column that has no value for some row."""
        width = len(self.table.columns)
        room = (None,) * (sum(item.position >= width for item in self.items))
        derived = [[*row[:width], *room] for row in rows]
        for item in self.items:
            values = self._values(item, derived, duck, failed if failed is not None else {})
            for place, value in zip(derived, values, strict=True):
                place[item.position] = value
        return [tuple(values) for values in derived]

    def _values(self, item: _Item, rows: Sequence[Sequence[Any]], duck: Duck, failed: Failures) -> list[Any]:
        if item.converted is None:
            return self._computed(item, rows, duck)
        column = item.converted
        try:
            values = self._computed(item, rows, duck)
        except errors.Error as problem:
            if problem.sqlstate[:2] in _PASSING:
                raise
            if column.id not in failed:
                failed[column.id] = self._first_failure(item, rows, duck, problem)
            values = self._known_values(item, rows, duck)
        if item.required and None in values:
            failed.setdefault(column.id, errors.NotNullViolation(column=column.name, relation=self.table.name))
        return values

    def _first_failure(
        self, item: _Item, rows: Sequence[Sequence[Any]], duck: Duck, problem: errors.Error
    ) -> errors.Error:
        """The error of the first row without a value, which is found by bisection; `problem` is that of all rows."""
        while len(rows) > 1:
            half = rows[: len(rows) // 2]
            try:
                self._computed(item, half, duck)
                rows = rows[len(half) :]
            except errors.Error as of_half:
                rows, problem = half, of_half
        columns = naming_columns(self.table)
        place = show_key(columns, [rows[0][self.table.columns.index(column)] for column in columns])
        name = self.table.columns[item.position].name
        return problem.located(f'column "{name}" of the row of {self.table.name} with {place}')

    def _known_values(self, item: _Item, rows: Sequence[Sequence[Any]], duck: Duck) -> list[Any]:
        """The values, NULL where the computation fails."""
        try:
            return self._computed(item, rows, duck, lenient=True)
        except errors.Error as problem:
            if problem.sqlstate[:2] in _PASSING:
                raise
            # DuckDB's TRY does not cover common subexpressions or volatile functions; the rows are computed one by one
            # then.
            return [self._known_values(item, [row], duck)[0] for row in rows] if len(rows) > 1 else [None]

    def _computed(self, item: _Item, rows: Sequence[Sequence[Any]], duck: Duck, lenient: bool = False) -> list[Any]:
        """`lenient`: NULL where the computation fails."""
        values: list[Any] = [None] * len(rows)
        left: Sequence[int] = range(len(rows))
        if item.evaluate is not None:
            left = []
            for place, row in enumerate(rows):
                try:
                    values[place] = item.evaluate(tuple(row))
                except Undecided:
                    left.append(place)
                except errors.Error:
                    if not lenient:
                        raise
        if left:
            found = self._values_in_duckdb(item, [rows[place] for place in left], duck, lenient)
            for place, value in zip(left, found, strict=True):
                try:
                    values[place] = item.coerce(value)
                except errors.Error:
                    if not lenient:
                        raise
        return values

    def _values_in_duckdb(self, item: _Item, rows: Sequence[Sequence[Any]], duck: Duck, lenient: bool) -> list[Any]:
        columns = [self.table.column_by_id[c] for c in item.expression.columns]
        schema = schema_of((c.id, c.type) for c in columns)
        positions = [self.table.columns.index(column) for column in columns]
        arrays = [array_of([row[p] for row in rows], f.type) for p, f in zip(positions, schema, strict=True)]
        given = pa.Table.from_arrays([*arrays, array_of(range(len(rows)), pa.int64())], [*schema.names, "position"])
        # The length of a text is checked by the coercion of each value.
        value = as_value(item.expression, item.type)
        sql = f"SELECT {f'TRY({value})' if lenient else value} FROM derived ORDER BY position"  # noqa: S608 - named by id
        with closing(DuckSession(duck.cursor(), {})) as session:
            return [value for (value,) in session.rows(DuckQuery(sql, {}, {"derived": given})).rows]


def compile_derivation(table: Table) -> Derivation | None:
    """None if entries need no derived values. A value may depend on those before it."""
    key = {c for index in table.coming for c in table.needed_for(index)}
    by_name = {f"c{c.id}": (position, c.type) for position, c in enumerate(table.columns)}

    def item(position: int, expression: Expression, type_: SqlType, converted: Column | None = None) -> _Item:
        evaluate = compile_value(expression.text, by_name, type_)
        required = converted is not None and (not converted.nullable or converted.id in key)
        return _Item(position, expression, type_, evaluate, coercer(type_), converted, required)

    places = list(enumerate(table.columns))
    items = [item(p, c.conversion, c.type, c) for p, c in places if c.conversion is not None]
    completed = ((p, c, c.completed) for p, c in places if c.completed is not None)
    items += [item(p, e, c.type) for p, c, e in completed if table.column_by_id.keys() >= set(e.columns)]
    items += [
        item(p, c.generated, c.type, c if c.state is not State.PUBLIC else None)
        for p, c in places
        if c.generated is not None and not c.virtual and c.conversion is None
    ]
    items += [item(p, c.generated, c.type) for p, c in places if c.generated is not None and c.virtual]
    items += [item(member_position(table, i), i.where, _BOOLEAN) for i in table.secondary if i.where is not None]
    return Derivation(table, tuple(items)) if items else None


def member_position(table: Table, index: Index) -> int:
    """The position in a derived row of the predicate of a partial index."""
    partial = [other.id for other in table.secondary if other.where is not None]
    return len(table.columns) + partial.index(index.id)
