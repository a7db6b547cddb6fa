"""Choice of the executor of a job: this process for small work, Spark for large work, with the same kernels.

**Invariant:** the result does not depend on the executor: units that one has finished are used by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from seachange import errors
from seachange.changer.job import Job
from seachange.changer.ports import SPARK_START, Overtaken
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.watching import Watch
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.change.vacuum import RewriteIndex, Rewritten
from seachange.model.change.work import Built, UnitDone, Violation
from seachange.model.ids import Seq, TableId
from seachange.pipeline.kernels.executor import Executor, OnProgress, Sizes, unwatched
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.overlay import BlockWrites
from seachange.pipeline.local_kernels import ExecutorFactory, LocalPipeline
from seachange.pipeline.spark_backend import SparkBackend, load_spark
from seachange.pipeline.spark_options import SparkOptions, parse_options
from seachange.pipeline.throttling.backoff import Foreground
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.pipeline.throttling.throttle import Throttling
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms, parse_size
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.spill import SortLimits

# Rough throughput of this process in rows per second: an index is sorted and written, a validation only reads.
_BUILT_PER_SECOND = 1_000_000
_READ_PER_SECOND = 10_000_000
# The startup cost of Spark, when it runs already and when it does not.
_WARM_SECONDS, _COLD_SECONDS = 2, 10


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """`local_rows`: up to this many rows are processed in-process; None decides by the estimated work."""

    local_rows: int | None
    cores: int
    memory_bytes: int
    unit_rows: int
    spark: SparkOptions
    free_space_bytes: int = 0
    bytes_per_second: int = 0
    backoff_ratio: float = 0.0
    growth_bytes_max: int = 0

    @property
    def sizes(self) -> Sizes | None:
        return Sizes(self.unit_rows, self.unit_rows) if self.unit_rows else None

    @property
    def asks_for_spark(self) -> bool:
        return self.local_rows is not None or bool(self.spark.master or self.spark.remote)


def pipeline_settings(parts: NodeParts, given: Sequence[tuple[str, str]]) -> PipelineSettings:
    """The settings of the database, overridden by those of the job's session."""
    settings = SessionSettings({**parts.settings, **dict(given)})
    local_rows = settings.get("seachange.local_rows")
    spark = {name: settings.get(f"seachange.spark.{name}") for name in _TEXTS}
    options = SparkOptions(
        **spark,
        idle_seconds=parse_duration_ms(settings.get("seachange.spark.idle_timeout")) // 1_000,
        more=parse_options(settings.get("seachange.spark.options")),
        log=parts.data / "log" / "spark.log",
    )
    return PipelineSettings(
        int(local_rows) if local_rows else None,
        int(settings.get("seachange.pipeline_cores")),
        parse_size(settings.get("seachange.pipeline_memory")),
        int(settings.get("seachange.pipeline_unit_rows")),
        options,
        parse_size(settings.get("seachange.pipeline_free_space")),
        parse_size(settings.get("seachange.pipeline_bytes_per_second")),
        float(settings.get("seachange.pipeline_backoff_ratio")),
        settings.typed.process_growth_bytes_max,
    )


_TEXTS = ("master", "remote", "driver_memory", "executor_memory", "executor_cores", "cores_max", "python")


def job_pipeline(
    parts: NodeParts,
    epoch: EpochState,
    interrupts: SessionInterrupts,
    job: Job,
    retention_us: int,
    own_writes: BlockWrites | None = None,
    watch: Watch | None = None,
) -> JobPipeline:
    """`own_writes` are those of the transaction block that the job belongs to."""
    settings = pipeline_settings(parts, job.settings)
    local = replace(
        local_pipeline(parts, epoch, interrupts),
        limits=SortLimits(settings.memory_bytes, settings.cores),
        sizes=settings.sizes or Sizes(),
        own_writes=own_writes,
        watch_task=partial(_watch_task, watch, settings.growth_bytes_max) if watch is not None else unwatched,
        throttling=Throttling(
            parts.files,
            settings.free_space_bytes,
            settings.bytes_per_second,
            interrupts.pause,
            parts.clock,
            _foreground(parts, settings.backoff_ratio),
        ),
    )
    return JobPipeline(local, settings, lambda text: parts.catalog.log_event(text, job.id), parts, retention_us)


class _RunningTask:
    """A task as the watchdog sees it."""

    # Its output is not committed by itself.
    is_settled = False

    def __init__(self, meter: ProgressMeter) -> None:
        self._meter = meter

    def interrupt(self) -> None:
        self._meter.interrupt()


def _watch_task(watch: Watch, growth_bytes_max: int, meter: ProgressMeter) -> AbstractContextManager[None]:
    return watch(_RunningTask(meter), 0, growth_bytes_max)


def task_site(backend: SparkBackend, parts: NodeParts, settings: PipelineSettings, is_local: bool) -> object:
    """The warehouse for the tasks of Spark. Those on this machine spill to this process' folder, and share its cache;
    each task is one of many, so it has one core."""
    spill = str(parts.data / "tmp") if is_local else None
    limits = SortLimits(settings.memory_bytes, 1)
    cache = parts.cache if is_local else replace(parts.cache, folder=None)
    return backend.packed_task.Site(parts.files.address, spill, limits, translate_error, parts.identity, cache)


class Warming(Protocol):
    """A Spark application that is being started."""

    @property
    def is_starting(self) -> bool: ...

    @property
    def problem(self) -> errors.Error | None: ...


def warm_spark(parts: NodeParts) -> Warming:
    """Starts Spark before there is work for it. If it fails to start, the work will report the problem."""
    host = load_spark().host.HOST
    host.warm(pipeline_settings(parts, ()).spark)
    warming: Warming = host
    return warming


def _foreground(parts: NodeParts, ratio: float) -> Foreground | None:
    """The foreground load of all nodes, including this one, from their heartbeats."""
    if not ratio:
        return None
    return Foreground(ratio, lambda: {node.name: node.pace for node in parts.catalog.nodes() if node.live}, parts.clock)


def worth_spark(settings: PipelineSettings, rows: int, built: int, warm: bool) -> bool:
    """Whether Spark is faster for this many rows, when `built` indexes are built from them, or they are only read (0).

    >>> settings = PipelineSettings(None, 0, 0, 0, SparkOptions())
    >>> worth_spark(settings, 50_000_000, 1, False), worth_spark(settings, 50_000_000, 0, False)
    (True, False)
    """
    if settings.local_rows is not None:
        return rows > settings.local_rows
    seconds = rows * built / _BUILT_PER_SECOND if built else rows / _READ_PER_SECOND
    return seconds > (_WARM_SECONDS if warm else _COLD_SECONDS)


@dataclass(slots=True)
class JobPipeline:
    """`log_event` adds a line to the job log."""

    local: LocalPipeline
    settings: PipelineSettings
    log_event: Callable[[str], None]
    parts: NodeParts
    retention_us: int
    _backend: SparkBackend | None = None
    # Whether the work waits for its application.
    _is_starting: bool = False
    # Whether the absence of Spark has been logged.
    _has_logged: bool = False

    @property
    def waiting(self) -> str:
        return SPARK_START if self._is_starting else self.local.throttling.waiting

    def backfill(
        self,
        op: BackfillIndexes,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        on_progress: OnProgress,
    ) -> tuple[Built, ...]:
        self.local.throttling.check_space()
        with self._executor_factory(self._is_for_spark(op, at)) as executor_factory:
            return replace(self.local, executor_factory=executor_factory).backfill(op, at, done, report, on_progress)

    def validate(self, op: Validate, at: Seq, report: Callable[[int], None]) -> Violation | None:
        with self._executor_factory(self._is_for_spark(op, at)) as executor_factory:
            return replace(self.local, executor_factory=executor_factory).validate(op, at, report)

    def rewrite(
        self,
        op: RewriteIndex,
        at: Seq,
        done: Sequence[UnitDone],
        report: Callable[[UnitDone], None],
        on_progress: OnProgress,
        planned: Callable[[int], None],
    ) -> Rewritten | None:
        self.local.throttling.check_space()
        with self.local.hold(at):
            # It may have been compacted while the job was paused or had no runner; that compaction is not what the
            # statement asked for.
            if self.local.is_compacted_since(op, at):
                raise Overtaken(f"index {op.index_id} was compacted since {at}")
            compact_unit = self.local.choose_compaction(op, at)
            if compact_unit is None:
                return None
            planned(compact_unit.source.rows)
            with self._executor_factory(self._is_worth(compact_unit.source.rows, 1)) as executor_factory:
                return replace(self.local, executor_factory=executor_factory).rewrite(
                    compact_unit, at, done, report, on_progress
                )

    def collect(self, on_progress: OnProgress) -> int:
        with ExitStack() as stack:

            def factory_for(files: int) -> ExecutorFactory | None:
                # Deleting a file counts as reading a row.
                return stack.enter_context(self._executor_factory(self._is_worth(files, 0)))

            return self.local.collect(self.retention_us, on_progress, factory_for)

    def check_converted(self, table_id: TableId, at: Seq) -> None:
        self.local.check_converted(table_id, at)

    def rows(self, table_id: TableId, at: Seq) -> int:
        return self.local.rows(table_id, at)

    def foresee(self, job: Job, at: Seq) -> None:
        """Starts Spark early if the job has work for it. A problem is reported by that work."""
        plan = job.rest()
        ops = [op for stage in plan.stages for op in plan.ops(stage)]
        with suppress(errors.Error):
            if any(self._is_for_spark(op, at) for op in ops if isinstance(op, BackfillIndexes | Validate)):
                backend = self._load()
                if backend is not None:
                    backend.host.HOST.warm(self.settings.spark)

    def _is_for_spark(self, op: BackfillIndexes | Validate, at: Seq) -> bool:
        built = len(op.index_ids) if isinstance(op, BackfillIndexes) else 0
        table_id = op.table_id if isinstance(op, BackfillIndexes) else TableId(descriptor_of(op.element))
        return self._is_worth(self.local.rows(table_id, at), built)

    def _is_worth(self, rows: int, built: int) -> bool:
        warm = self._backend is not None and self._backend.host.HOST.is_warm
        return worth_spark(self.settings, rows, built, warm)

    @contextmanager
    def _executor_factory(self, is_for_spark: bool) -> Iterator[ExecutorFactory | None]:
        """Yields the executor factory for Spark, or None: then this process does the work."""
        backend = self._load() if is_for_spark else None
        if backend is None:
            yield None
            return
        with ExitStack() as stack:

            def executor_factory(kernel_context: KernelContext, on_progress: OnProgress) -> Executor:
                def wait() -> None:
                    kernel_context.interrupts.check()
                    on_progress(0)

                self._is_starting = True
                try:
                    application = stack.enter_context(backend.host.HOST.using(self.settings.spark, wait))
                finally:
                    self._is_starting = False
                executor: Executor = backend.spark_executor.SparkExecutor(
                    application,
                    self._site(backend),
                    kernel_context,
                    on_progress,
                    self.log_event,
                    self.settings.cores,
                    self.settings.sizes,
                )
                return executor

            yield executor_factory

    def _load(self) -> SparkBackend | None:
        """None if Spark is not available and no setting asks for it."""
        if self._backend is None:
            try:
                self._backend = load_spark()
                if not self.settings.spark.remote:
                    self._backend.host.check_java()
            except errors.SparkUnavailable as problem:
                self._backend = None
                if self.settings.asks_for_spark:
                    raise
                if not self._has_logged:
                    self._has_logged = True
                    self.log_event(f"runs in-process: {problem}")
        return self._backend

    def _site(self, backend: SparkBackend) -> object:
        return task_site(backend, self.parts, self.settings, self.settings.spark.is_local)
