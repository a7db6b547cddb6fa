"""Writing the rows of a DataFrame to a table: spooled by Spark's executors, written as segments by tasks, attached
once.

Spark evaluates the DataFrame and writes its rows to a folder with its commit protocol, so each row is there once in
spite of retries and speculative execution. The files of that folder are grouped into units; a task per unit, here or on
the executors, writes segments. The segments are staged in the transaction like those of any load.

**Invariant:** the driver is a node like any other: the write is planned with the versions of its snapshot, and its
commit is rebased on what has been published since.

**Invariant:** generated values for the rows are drawn by the driver before a task is sent.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.engine.bulk.bulk_insert import BulkInsert, Written
from seachange.engine.constraints.computed_values import record_failures
from seachange.engine.dataframes.dataframe_read import check_shared
from seachange.engine.dataframes.dataframe_task import WriteUnit, WroteUnit
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.jobs.spark_pipeline import PipelineSettings, pipeline_settings, task_site, worth_spark
from seachange.engine.session.enum_labels import EnumTypes
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, Epoch, SegmentId
from seachange.model.schema.descriptor import Column, Table
from seachange.pipeline.kernels.executor import Executor, LocalExecutor, Sizes, ignore_progress, run_all
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.reservation import reserve_files
from seachange.pipeline.spark_backend import SparkBackend, load_spark
from seachange.pipeline.throttling.throttle import Throttling
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_folder
from seachange.sql.copy.frame_load import FrameColumn, FrameQuery, plan_frame, source_name
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import arrow_type
from seachange.storage.segment_reader import reading
from seachange.storage.spill import SortLimits
from seachange.values.timezone import session_zone

# PySpark is optional, so its types cannot be imported.
DataFrame = Any
# Spark begins a new file after this many rows, so that files can be grouped into units.
_FILE_ROWS_MAX = 500_000
_FOLDER = "spool"
# The folders that this process uses.
_used: set[Path] = set()


@dataclass(frozen=True, slots=True)
class SpooledFile:
    path: str
    rows: int
    size_bytes: int


def insert_dataframe(txn: Transaction, table: Table, frame: DataFrame, settings: Sequence[tuple[str, str]] = ()) -> int:
    """Returns the number of rows; `settings` are the pipeline settings of the session."""
    backend = load_spark()
    check_shared(txn.state.parts, frame.sparkSession, "writing a DataFrame")
    described = [FrameColumn(*column) for column in backend.frame_writes.describe_frame(frame)]
    query = plan_frame(table, described, backend.frame_writes.is_case_sensitive(frame))
    chosen = pipeline_settings(txn.state.parts, settings)

    def write(load: BulkInsert, plan: WritePlan) -> int:
        return _FrameInsert(txn, plan, query, backend, chosen).run(frame, len(described), load)

    return txn.writes.insert_bulk(table, write, checked=True)


class _FrameInsert:
    def __init__(
        self, txn: Transaction, plan: WritePlan, query: FrameQuery, backend: SparkBackend, settings: PipelineSettings
    ) -> None:
        self._txn = txn
        self._plan = plan
        self._query = query
        self._backend = backend
        self._settings = settings

    def run(self, frame: DataFrame, width: int, load: BulkInsert) -> int:
        parts, epoch = self._txn.state.parts, self._txn.state.epoch.epoch
        nodes = parts.catalog.nodes
        sweep_spool(parts.data, lambda: {node.epoch for node in nodes() if node.live and node.epoch != epoch})
        token = parts.entropy.token(8)
        with spool_folder(parts.data, epoch, token) as folder:
            names = [source_name(place) for place in range(width)]
            rows_max = min(self._settings.unit_rows or _FILE_ROWS_MAX, _FILE_ROWS_MAX)
            tag = f"seachange-{token.hex()}"
            self._backend.frame_writes.write_frame(
                frame, names, folder, rows_max, tag, self._txn.state.client.interrupts
            )
            files = _list_files(folder)
            return self._write(files, load) if files else 0

    def _write(self, files: Sequence[SpooledFile], load: BulkInsert) -> int:
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

    def _unit(self, files: Sequence[SpooledFile], load: BulkInsert) -> WriteUnit:
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
    def _executor(self, kernel_context: KernelContext, files: Sequence[SpooledFile]) -> Iterator[Executor]:
        rows, settings = sum(file.rows for file in files), self._settings
        if not worth_spark(settings, rows, len(self._plan.entries), warm=True):
            yield LocalExecutor(kernel_context, settings.sizes or Sizes())
            return
        with self._backend.host.HOST.using(settings.spark, kernel_context.interrupts.check) as application:
            parts = self._txn.state.parts
            site = task_site(self._backend, parts, settings, application.master.startswith("local"))
            log_event: Callable[[str], None] = parts.catalog.log_event
            yield self._backend.spark_executor.SparkExecutor(
                application, site, kernel_context, ignore_progress, log_event, settings.cores, settings.sizes
            )


def _list_files(folder: Path) -> list[SpooledFile]:
    """The non-empty files, in the order of their partitions."""
    found = []
    for path in sorted(folder.glob("part-*")):
        with reading(path.name):
            rows = pq.read_metadata(path).num_rows
        if rows:
            found.append(SpooledFile(str(path), rows, path.stat().st_size))
    return found


def _group(files: Sequence[SpooledFile], rows_max: int) -> Iterator[list[SpooledFile]]:
    """Groups of consecutive files with at most about `rows_max` rows each."""
    held: list[SpooledFile] = []
    rows = 0
    for file in files:
        if held and rows + file.rows > rows_max:
            yield held
            held, rows = [], 0
        held.append(file)
        rows += file.rows
    if held:
        yield held


# Spool folders: rows on their way into a table, shared by all machines that write them.
#
# **Invariant:** a folder's name begins with the epoch of its owner, and the folder is removed with its owner's work.
# What a dead owner, or a Spark task that did not stop in time, has left behind is removed by the next writer.
@contextmanager
def spool_folder(data: Path, epoch: Epoch, token: bytes) -> Iterator[Path]:
    """A name for a folder that does not exist yet."""
    parent = data / _FOLDER
    with named_errors("create", str(parent)):
        create_folder(parent)
    folder = parent / f"{epoch}-{token.hex()}"
    _used.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _used.discard(folder)


def sweep_spool(data: Path, others: Callable[[], Collection[Epoch]]) -> None:
    """Removes folders that are used neither here nor by other live nodes. The nodes are read after the folders: a node
    that registers in between has a folder that is not in the list."""
    found = list((data / _FOLDER).glob("*-*"))
    living = others() if found else ()
    for folder in found:
        epoch = folder.name.partition("-")[0]
        if epoch.isdigit() and int(epoch) not in living and folder not in _used:
            shutil.rmtree(folder, ignore_errors=True)
