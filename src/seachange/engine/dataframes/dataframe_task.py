"""A task that writes one unit of a DataFrame's rows as sorted segments of every index, in this process or in Spark.

**Invariant:** a task is a pure function of its fields and of immutable files: sequence values and other defaults are
drawn before it is sent, so that every attempt writes the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from glob import escape
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.engine.bulk.bulk_constraints import parts_of, scan_rows
from seachange.engine.bulk.bulk_rows import BulkRows, distinct_of
from seachange.engine.constraints.computed_values import filler_for
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import EntryPlan, compile_write_plan
from seachange.engine.transaction.enum_labels import hold_array
from seachange.model.ids import ColumnId, IndexId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.enums import Labels
from seachange.model.segments import Segment
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.rebuild import Computed, first_failing
from seachange.pipeline.kernels.row_names import show_key
from seachange.pipeline.kernels.tasks import segments_for
from seachange.sql.copy.frame_load import FILES, FrameQuery
from seachange.sql.duck.column_values import check_texts
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.stream import BATCH_ROWS, ArrowStream
from seachange.storage.arrow import arrow_type
from seachange.storage.bulk import Distinct
from seachange.storage.duck import Duck
from seachange.storage.entries import select_entries
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.sorter import Sorter

# The maximum length of a row in the message of a conversion error.
_SHOWN_MAX = 300


@dataclass(frozen=True, slots=True)
class ConversionFailure:
    """Why a row has no value for a column that is being converted."""

    column_id: ColumnId
    sqlstate: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class WroteUnit:
    rows: int
    segments: tuple[tuple[IndexId, tuple[Segment, ...]], ...]
    failures: tuple[ConversionFailure, ...]


@dataclass(frozen=True, slots=True)
class WriteUnit:
    """`files` hold `rows` rows of the DataFrame. `shapes` are the shapes of the indexes to write, the primary one
    first; `drawn` are the values of defaults that are expressions, one per row."""

    table: Table
    query: FrameQuery
    zone: str
    shapes: tuple[SegmentShape, ...]
    files: tuple[str, ...]
    rows: int
    read_bytes: int
    first_rowid: int
    # The labels of the enum types of columns that the DataFrame contains.
    labels: tuple[tuple[ColumnId, Labels], ...]
    drawn: tuple[tuple[ColumnId, pa.Array], ...]
    # Whether errors name the file: it is known to the user.
    shows_files: bool = False

    @property
    def title(self) -> str:
        return f"write {self.rows} rows of a DataFrame into {self.table.name}"

    @property
    def segments(self) -> int:
        return segments_for(self.rows, self.read_bytes) * len(self.shapes)

    @property
    def steps(self) -> int:
        return 1 + len(self.shapes)

    @property
    def write_bytes(self) -> int:
        return self.read_bytes * len(self.shapes)

    def run(self, kernel_context: KernelContext) -> WroteUnit:
        duck = Duck(kernel_context.spill, kernel_context.limits.memory_bytes_max)
        with closing(duck), kernel_context.sorter() as sorter:
            return _Writing(self, kernel_context, duck, sorter).run()


class _Given:
    """Hands out the values that were drawn for the rows of a unit, batch by batch."""

    def __init__(self, unit: WriteUnit) -> None:
        self._next_rowid = unit.first_rowid
        self._left = dict(unit.drawn)

    def rowids(self, count: int) -> int:
        first = self._next_rowid
        self._next_rowid += count
        return first

    def defaults(self, column: Column, count: int) -> Sequence[Any]:
        values = self._left[column.id]
        if len(values) < count:
            raise errors.Bug(detail=f"fewer values were drawn for column {column.name} than there are rows")
        self._left[column.id] = values[count:]
        batch: Sequence[Any] = values[:count]
        return batch


class _Writing:
    def __init__(self, unit: WriteUnit, kernel_context: KernelContext, duck: Duck, sorter: Sorter) -> None:
        self._unit = unit
        self._kernel_context = kernel_context
        self._duck = duck
        self._sorter = sorter
        self._plan = compile_write_plan(unit.table)
        self._supply = _Given(unit)
        self._failed: Failures = {}

    def run(self) -> WroteUnit:
        filler = filler_for(self._plan, self._duck, self._note)
        rows = BulkRows(self._plan, self._supply, filler, self._kernel_context.interrupts.check)
        primary = self._write_primary(rows)
        if rows.count != self._unit.rows:
            raise errors.Bug(detail=f"{rows.count} rows of a DataFrame were read instead of {self._unit.rows}")
        self._kernel_context.warehouse.remember(primary)
        others = [(shape.index_id, tuple(self._write_secondary(shape, primary))) for shape in self._unit.shapes[1:]]
        written = [(self._plan.primary.index.id, tuple(primary)), *others]
        self._check(primary)
        failures = (ConversionFailure(id_, p.sqlstate, str(p), p.hint) for id_, p in self._failed.items())
        return WroteUnit(rows.count, tuple(written), tuple(failures))

    def _note(self, failed: Failures) -> None:
        for column_id, problem in failed.items():
            self._failed.setdefault(column_id, problem)

    def _write_primary(self, rows: BulkRows) -> list[Segment]:
        try:
            return self._sort(rows)
        except errors.DataError as problem:
            raise self._located(problem) from problem

    def _sort(self, rows: BulkRows) -> list[Segment]:
        unit = self._unit
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in unit.table.visible_columns])
        sort = partial(self._sorter.sort_stream, shape=unit.shapes[0], unique=self._distinct(self._plan.primary))
        with closing(DuckSession(self._duck.cursor(), {})) as session:
            session.set_zone(unit.zone)
            query = DuckQuery(unit.query.sql, {FILES: [escape(file) for file in unit.files]}, {})
            with session.batches(query, BATCH_ROWS) as reader:
                stream = ArrowStream(reader, schema, [c.type for c in unit.table.visible_columns], self._complete)
                return stream.pass_to(lambda given: sort(rows.stored(given)))

    def _complete(self, arrays: list[pa.Array]) -> list[pa.Array]:
        """Adds drawn defaults for the columns that the DataFrame lacks, and encodes enum labels. Text of other
        programs may have characters that cannot be stored."""
        for array in arrays:
            check_texts(array)
        drawn, labels = dict(self._unit.drawn), dict(self._unit.labels)
        return [
            pa.array(self._supply.defaults(column, len(array)), arrow_type(column.type))
            if column.id in drawn
            else (hold_array(labels[column.id], array) if column.id in labels else array)
            for column, array in zip(self._unit.table.visible_columns, arrays, strict=True)
        ]

    def _distinct(self, entry: EntryPlan) -> Distinct | None:
        return distinct_of(self._plan, entry)

    def _write_secondary(self, shape: SegmentShape, primary: list[Segment]) -> list[Segment]:
        self._kernel_context.interrupts.check()
        entry = self._plan.entry(shape.index_id)
        sql = select_entries(self._unit.table, entry.index, "read_parquet($files)", filled=True)
        paths = {"files": self._kernel_context.warehouse.paths(primary)}
        segments = self._sorter.sort_query(sql, paths, shape, self._distinct(entry))
        self._kernel_context.warehouse.remember(segments)
        return segments

    def _check(self, primary: list[Segment]) -> None:
        checks = self._plan.checks
        if checks is None or not primary:
            return
        # A task on another machine is cancelled by ending its process.
        interrupts = self._kernel_context.interrupts
        ours = interrupts if isinstance(interrupts, SessionInterrupts) else SessionInterrupts()
        scan = scan_rows(self._unit.table, parts_of(primary), self._kernel_context.warehouse)
        checks.verify_scan(scan, self._duck, ours)

    def _located(self, problem: errors.Error) -> errors.Error:
        """The error with the column and the row that caused it."""
        sorter, unit = self._sorter, self._unit
        sorter.ask(f"SET TimeZone = '{unit.zone}'")
        for file in unit.files:
            # Of each file apart: the rows of several are kept in any order.
            path = escape(file).replace("'", "''")
            sorter.keep("given", f"SELECT * FROM read_parquet('{path}')")  # noqa: S608 - quoted
            for column_id, text in unit.query.conversions:
                column = unit.table.column_by_id[column_id]
                place = first_failing(sorter, "given", Computed(column, text, ()))
                if place is not None:
                    where = f'column "{column.name}" of the row with {self._show(place)}'
                    return problem.located(f'{where} in "{file}"' if unit.shows_files else where)
            sorter.drop("given")
        return problem

    def _show(self, place: int) -> str:
        given = [self._unit.table.column_by_id[c] for c, _ in self._unit.query.conversions]
        ((*values,),) = self._sorter.fetch(f"SELECT * FROM given WHERE rowid = {place}")  # noqa: S608 - a number
        shown = show_key(given, values)
        return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."
