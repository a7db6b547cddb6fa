"""Rows of Parquet files into a table: units of files, tasks that write segments, attached once.

**Invariant:** the write is planned with the versions of the transaction's snapshot, and its commit is rebased on what
has been published since.

**Invariant:** generated values for the rows are drawn here before a task is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa

from seachange import errors
from seachange.engine.bulk.bulk_insert import BulkInsert, Written
from seachange.engine.constraints.computed_values import record_failures
from seachange.engine.dataframes.dataframe_task import WriteUnit, WroteUnit
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.jobs.spark_pipeline import PipelineSettings, task_site, worth_spark
from seachange.engine.transaction.enum_labels import EnumTypes
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, SegmentId
from seachange.model.schema.descriptor import Column
from seachange.pipeline.kernels.executor import Executor, LocalExecutor, Sizes, ignore_progress, run_all
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.reservation import reserve_files
from seachange.pipeline.spark_backend import SparkBackend
from seachange.pipeline.throttling.throttle import Throttling
from seachange.sql.copy.frame_load import FrameQuery
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import arrow_type
from seachange.storage.spill import SortLimits
from seachange.values.timezone import session_zone


@dataclass(frozen=True, slots=True)
class RowFile:
    path: str
    rows: int
    size_bytes: int


class FileInsert:
    """`backend` is loaded if Spark is worth it."""

    def __init__(
        self,
        txn: Transaction,
        plan: WritePlan,
        query: FrameQuery,
        backend: Callable[[], SparkBackend],
        settings: PipelineSettings,
        shows_files: bool = False,
    ) -> None:
        self._txn = txn
        self._plan = plan
        self._query = query
        self._backend = backend
        self._settings = settings
        self._shows_files = shows_files

    def write(self, files: Sequence[RowFile], load: BulkInsert) -> int:
        with self._kernel_context() as kernel_context, self._executor(kernel_context, files) as executor:
            groups = list(_group(files, executor.sizes(sum(file.rows for file in files)).unit_rows))
            wrote: list[WroteUnit] = []
            # Drawn values are held in memory until their rows are written.
            step = max(2 * executor.parallelism, 1) if self._drawn() else len(groups)
            for first in range(0, len(groups), step):
                wrote += run_all(executor, [self._unit(group, load) for group in groups[first : first + step]])
            self._take(wrote, load)
            return sum(unit.rows for unit in wrote)

    def _take(self, wrote: Sequence[WroteUnit], load: BulkInsert) -> None:
        for unit in wrote:
            found = {f.column_id: errors.remembered(f.sqlstate, f.message, f.hint) for f in unit.failures}
            record_failures(self._txn.state, self._plan.table, dict(found))
        by_index = [dict(unit.segments) for unit in wrote]
        entries = [entry for entry in self._plan.entries if entry.is_primary or entry.behaviour.writes]
        written: Written = [(e, [s for unit in by_index for s in unit[e.index.id]]) for e in entries]
        # The writer has verified them already.
        self._txn.state.parts.warehouse.remember(segment for _, segments in written for segment in segments)
        load.adopt(written)

    # Units.

    def _unit(self, files: Sequence[RowFile], load: BulkInsert) -> WriteUnit:
        rows = sum(file.rows for file in files)
        plan = self._plan
        entries = [entry for entry in plan.entries if entry.is_primary or entry.behaviour.writes]
        return WriteUnit(
            plan.table,
            self._query,
            session_zone(),
            tuple(load.shape(entry) for entry in entries),
            tuple(file.path for file in files),
            rows,
            sum(file.size_bytes for file in files),
            load.rowids(rows) if plan.rowid is not None else 0,
            tuple((c.id, EnumTypes(self._txn.schema).labels(c)) for c in self._query.given if c.type.enum),
            tuple((column.id, self._draw(column, rows)) for column in self._drawn()),
            self._shows_files,
        )

    def _drawn(self) -> list[Column]:
        """The columns whose defaults are drawn per row: those that the DataFrame lacks, and those that are not public
        yet."""
        given: set[ColumnId] = {column.id for column in self._query.given}
        columns = self._plan.table.columns
        return [c for c in columns if not c.hidden and c.id not in given and is_drawn(c) and c.conversion is None]

    def _draw(self, column: Column, count: int) -> pa.Array:
        return pa.array(self._txn.state.sequences.defaults(column, count), arrow_type(column.type))

    # Executors.

    @contextmanager
    def _kernel_context(self) -> Iterator[KernelContext]:
        """Reserved segments are abandoned on failure, except those that are staged or may still be written by a
        task."""
        parts, epoch = self._txn.state.parts, self._txn.state.epoch.epoch
        reserved: set[SegmentId] = set()

        def reserve(count: int) -> list[SegmentId]:
            ids = reserve_files(parts.catalog, epoch, parts.files, count)
            reserved.update(ids)
            return ids

        def give_up(ids: Sequence[SegmentId]) -> None:
            if ids:
                reserved.difference_update(ids)
                parts.catalog.abandon_segments(epoch, sorted(ids))

        interrupts, settings = self._txn.state.client.interrupts, self._settings
        throttling = Throttling(
            parts.files, settings.free_space_bytes, settings.bytes_per_second, interrupts.pause, parts.clock
        )
        limits = SortLimits(settings.memory_bytes, settings.cores)
        try:
            yield KernelContext(
                parts.warehouse,
                parts.data / "tmp",
                reserve,
                interrupts,
                translate_error,
                limits,
                give_up,
                reserved.difference_update,
                throttling,
                connect=parts.sorts.connect,
            )
        except BaseException:
            with suppress(errors.Error):
                give_up(tuple(reserved))
            raise

    @contextmanager
    def _executor(self, kernel_context: KernelContext, files: Sequence[RowFile]) -> Iterator[Executor]:
        rows, settings = sum(file.rows for file in files), self._settings
        if not worth_spark(settings, rows, len(self._plan.entries), warm=True):
            yield LocalExecutor(kernel_context, settings.sizes or Sizes())
            return
        backend = self._backend()
        with backend.host.HOST.using(settings.spark, kernel_context.interrupts.check) as application:
            parts = self._txn.state.parts
            site = task_site(backend, parts, settings, application.master.startswith("local"))
            log_event: Callable[[str], None] = parts.catalog.log_event
            yield backend.spark_executor.SparkExecutor(
                application, site, kernel_context, ignore_progress, log_event, settings.cores, settings.sizes
            )


def _group(files: Sequence[RowFile], rows_max: int) -> Iterator[list[RowFile]]:
    """Groups of consecutive files with at most about `rows_max` rows each."""
    held: list[RowFile] = []
    rows = 0
    for file in files:
        if held and rows + file.rows > rows_max:
            yield held
            held, rows = [], 0
        held.append(file)
        rows += file.rows
    if held:
        yield held
