"""The kernels over a catalog and a warehouse, as of a sequence that is pinned while they read. They run in this process
unless there is an executor factory.

**Invariant:** a segment that was reserved and not reported is abandoned when the work fails; a reported one belongs to
the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.change.vacuum import RewriteIndex, Rewritten
from seachange.model.change.work import Built, UnitDone, Violation
from seachange.model.ids import Epoch, IndexId, SegmentId, Seq, TableId
from seachange.model.schema.descriptor import Table
from seachange.pipeline.compaction.gc import collect_garbage
from seachange.pipeline.compaction.generations import CompactUnit, choose_compaction, rewrite
from seachange.pipeline.kernels.backfill import Report, backfill
from seachange.pipeline.kernels.converted import check_converted, check_keys
from seachange.pipeline.kernels.executor import (
    Executor,
    LocalExecutor,
    OnProgress,
    Sizes,
    WatchTask,
    ignore_progress,
    unwatched,
)
from seachange.pipeline.kernels.kernel_context import KernelContext, TaskInterrupts
from seachange.pipeline.kernels.overlay import BlockWrites, OverlaidSources
from seachange.pipeline.kernels.rebuild import ResolveDefault, Translate, keep_default
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.pipeline.kernels.sampled_build import sampled_bytes
from seachange.pipeline.kernels.source import IndexSource, RowSources, Sources, built_source, seen_through
from seachange.pipeline.kernels.tasks import check_computed, work_bytes
from seachange.pipeline.kernels.validation import Progress, validate
from seachange.pipeline.reservation import reserve_files
from seachange.pipeline.throttling.throttle import Throttling
from seachange.storage.spill import Connect, SortLimits, sorting_connection
from seachange.storage.warehouse import Warehouse

ExecutorFactory = Callable[[KernelContext, OnProgress], Executor]
# Pins a sequence: nothing that a snapshot at it can reach is collected.
Hold = Callable[[Seq], AbstractContextManager[None]]

# How much more an index may take than if all columns took the same: if there is room for that, no sample is needed.
_UNEVEN_MAX = 32


@dataclass(frozen=True, slots=True)
class LocalPipeline:
    catalog: Catalog
    epoch: Epoch
    warehouse: Warehouse
    spill: Path
    hold: Hold
    interrupts: TaskInterrupts
    translate: Translate
    resolve_default: ResolveDefault = keep_default
    sizes: Sizes = Sizes()  # noqa: RUF009 - a value
    limits: SortLimits = SortLimits()  # noqa: RUF009 - a value
    throttling: Throttling = field(default_factory=Throttling)
    connect: Connect = sorting_connection
    # Around each task of this process.
    watch_task: WatchTask = unwatched
    # Creates the executor; None uses this process. Its second argument is called regularly while tasks run.
    executor_factory: ExecutorFactory | None = None
    # What is read instead of the committed rows as of the sequence.
    rows_read: RowSources | None = None
    # What a transaction block has written, over whose rows its constraints are validated. It is never part of what is
    # built.
    own_writes: BlockWrites | None = None
    # Generations as of a sequence that are not attached yet: other indexes may be built from them.
    _built: dict[tuple[IndexId, Seq], Built] = field(default_factory=dict)

    def backfill(
        self,
        op: BackfillIndexes,
        at: Seq,
        done: Sequence[UnitDone],
        report: Report,
        on_progress: OnProgress = ignore_progress,
    ) -> tuple[Built, ...]:
        with self.hold(at), self._kernel_context() as (kernel_context, reserved):

            def on_unit_done(unit: UnitDone) -> None:
                # If a report fails, it may have been stored: its files must not be abandoned here.
                reserved.difference_update(unit.files)
                report(unit)

            source, targets = self._subject(op, at)
            if not done:
                self._check_fit(source, targets, at, kernel_context)
            executor = self._executor(kernel_context, on_progress)
            lenient = self._check_own_rows(source, targets, at, kernel_context)
            built = backfill(
                source, targets, executor, self.warehouse, done, on_unit_done, self.resolve_default, lenient
            )
            self._built.update({(generation.index_id, at): generation for generation in built})
            return built

    def estimate(self, source: IndexSource, targets: Sequence[BuiltIndex]) -> dict[IndexId, int]:
        """How much the indexes will take, by a sample of the rows."""
        with self._kernel_context() as (kernel_context, _):
            return sampled_bytes(source, targets, kernel_context)

    def copy(
        self, source: IndexSource, target: BuiltIndex, at: Seq, resolve_default: ResolveDefault = keep_default
    ) -> Built:
        """Builds an index that is never attached: the files belong to the caller."""
        with self.hold(at), self._kernel_context() as (kernel_context, reserved):
            self._check_fit(source, [target], at, kernel_context)
            executor = self._executor(kernel_context, ignore_progress)
            (built,) = backfill(source, [target], executor, self.warehouse, (), lambda unit: None, resolve_default)
            # Sorted runs that were merged have gone into other files.
            kept = {member.segment.id for member in built.members}
            self.catalog.abandon_segments(self.epoch, sorted(reserved - kept))
            return built

    def validate(self, op: Validate, at: Seq, report: Progress) -> Violation | None:
        with self.hold(at), self._kernel_context() as (kernel_context, _):
            count = _Counted(report)
            executor = self._executor(kernel_context, count.on_progress)
            sources = self._sources(at)
            if self.own_writes is not None and isinstance(sources, Sources):
                sources = OverlaidSources(sources, self.own_writes)
            return validate(op, sources, executor, self.warehouse, count.finish)

    def choose_compaction(self, op: RewriteIndex, at: Seq) -> CompactUnit | None:
        """The compaction to do; None if there is none. The caller pins the sequence until it is done."""
        sources = self._sources(at)
        table = sources.tables().get(op.table_id)
        index = table.index_by_id.get(op.index_id) if table is not None else None
        newest = self.catalog.newest_generation(op.index_id)
        # An index without a base is under construction: a generation made from its deltas would hide the backfill.
        if table is None or index is None or newest is None or newest.base > at:
            return None
        return choose_compaction(sources.load(table, index), newest, op.full)

    def is_compacted_since(self, op: RewriteIndex, at: Seq) -> bool:
        """Whether the index has got a generation with a base after the sequence."""
        newest = self.catalog.newest_generation(op.index_id)
        return newest is not None and newest.base > at

    def rewrite(
        self,
        compact_unit: CompactUnit,
        at: Seq,
        done: Sequence[UnitDone],
        report: Report,
        on_progress: OnProgress = ignore_progress,
    ) -> Rewritten:
        with self.hold(at), self._kernel_context() as (kernel_context, reserved):

            def on_unit_done(unit: UnitDone) -> None:
                reserved.difference_update(unit.files)
                report(unit)

            if not done:
                index = compact_unit.source.index
                what = f"rewriting {index.name} of table {compact_unit.source.table.name}"
                self.throttling.begin(f"{at}-{index.id}", what, compact_unit.source.size_bytes)
            return rewrite(
                compact_unit, self._executor(kernel_context, on_progress), self.warehouse, done, on_unit_done
            )

    def collect(
        self, retention_us: int, on_progress: OnProgress, factory_for: Callable[[int], ExecutorFactory | None]
    ) -> int:
        """Deletes the files that nothing can reach any more, on the executor that the factory for this number of files
        creates."""
        with self._kernel_context() as (kernel_context, _):

            def new_executor(files: int) -> Executor:
                return replace(self, executor_factory=factory_for(files))._executor(kernel_context, on_progress)

            return collect_garbage(self.catalog, self.epoch, self.warehouse, retention_us, new_executor)

    def check_converted(self, table_id: TableId, at: Seq) -> None:
        with self.hold(at), self._kernel_context() as (kernel_context, _):
            sources = self._sources(at)
            table = _table(sources, table_id, at)
            if table.next_primary is None:
                raise errors.Bug(detail=f"table {table.name} is not converted as of {at}")
            through = seen_through(table, table.next_primary.id)
            made = sources.load(through, through.primary)
            check_converted(made, kernel_context)
            keys = [table.column_by_id[c] for c in table.needed_for(table.next_primary)]
            if keys:
                check_keys(sources.load(table, table.primary), made, keys, kernel_context)

    def rows(self, table_id: TableId, at: Seq) -> int:
        """Rows that deltas have superseded in files still count."""
        with self.hold(at):
            table = self._sources(at).tables().get(table_id)
            if table is None:
                return 0
            contents = self.catalog.index_contents(self.epoch, table.primary.id, at)
        members = contents.generation.members if contents.generation is not None else ()
        inline = sum(batch.rows for delta in contents.deltas for batch in delta.batches)
        deltas = sum(segment.rows for delta in contents.deltas for segment in delta.segments)
        return inline + deltas + sum(m.segment.rows - len(m.deleted) // 4 for m in members)

    def _executor(self, kernel_context: KernelContext, on_progress: OnProgress) -> Executor:
        return (
            LocalExecutor(kernel_context, self.sizes, on_progress=on_progress, watch=self.watch_task)
            if self.executor_factory is None
            else self.executor_factory(kernel_context, on_progress)
        )

    def _check_fit(
        self, source: IndexSource, targets: Sequence[BuiltIndex], at: Seq, kernel_context: KernelContext
    ) -> None:
        names = ", ".join(target.index.name for target in targets)
        work = "-".join(map(str, (at, *(target.index.id for target in targets))))
        what = f"building {names} of table {source.table.name}"
        needed = work_bytes(source, targets)
        if not self.throttling.has_room(_UNEVEN_MAX * needed):
            needed = work_bytes(source, targets, sampled_bytes(source, targets, kernel_context))
        self.throttling.begin(work, what, needed)

    def _subject(self, op: BackfillIndexes, at: Seq) -> tuple[IndexSource, list[BuiltIndex]]:
        sources = self._sources(at)
        table = _table(sources, op.table_id, at)
        through = seen_through(table, op.source_id)
        if through.primary.id != op.source_id:
            raise errors.Bug(detail=f"index {op.source_id} of {table.name} is to be read, and is not a primary one")
        unattached = self._built.get((op.source_id, at))
        source = sources.load(through, through.primary) if unattached is None else built_source(through, unattached)
        return source, built_indexes(table, op)

    def _check_own_rows(
        self, source: IndexSource, targets: Sequence[BuiltIndex], at: Seq, kernel_context: KernelContext
    ) -> bool:
        """Computed columns need values only for the rows that the COMMIT of a block leaves, which are checked here.
        Returns whether the committed rows may be others."""
        sources = self._sources(at)
        is_computed = any(target.is_computed_from(source.index) for target in targets)
        if self.own_writes is None or source.index.id not in self.own_writes.by_index or not is_computed:
            return False
        assert isinstance(sources, Sources)
        overlaid = OverlaidSources(sources, self.own_writes)
        rows = overlaid.load(source.table, source.index)
        check_computed(replace(rows, table=overlaid.as_known(rows.table)), targets, kernel_context)
        return True

    def _sources(self, at: Seq) -> RowSources:
        if self.rows_read is not None:
            return self.rows_read
        return Sources(self.catalog, self.epoch, self.warehouse, at)

    @contextmanager
    def _kernel_context(self) -> Iterator[tuple[KernelContext, set[SegmentId]]]:
        reserved: set[SegmentId] = set()

        def reserve(count: int) -> list[SegmentId]:
            ids = reserve_files(self.catalog, self.epoch, self.warehouse.files, count)
            reserved.update(ids)
            return ids

        def give_up(ids: Sequence[SegmentId]) -> None:
            if ids:
                reserved.difference_update(ids)
                self.catalog.abandon_segments(self.epoch, sorted(ids))

        kernel_context = KernelContext(
            self.warehouse,
            self.spill,
            reserve,
            self.interrupts,
            self.translate,
            self.limits,
            give_up,
            reserved.difference_update,
            self.throttling,
            connect=self.connect,
        )
        try:
            yield kernel_context, reserved
        except Exception:
            # Any exception: a job is cancelled, paused or lost by an exception from its progress callback.
            with suppress(errors.Error):
                give_up(tuple(reserved))
            raise


@dataclass(slots=True)
class _Counted:
    """Reports each row once: while its task is running, or when it is finished."""

    report: Progress
    finished: int = 0
    reported: int = 0

    def finish(self, rows: int) -> None:
        self.finished += rows
        self.on_progress(0)

    def on_progress(self, rows: int) -> None:
        more = max(self.finished + rows - self.reported, 0)
        self.reported += more
        self.report(more)


def _table(sources: RowSources, table_id: TableId, at: Seq) -> Table:
    table = sources.tables().get(table_id)
    if table is None:
        raise errors.Bug(detail=f"table {table_id} is not there at {at}")
    return table


def built_indexes(table: Table, op: BackfillIndexes) -> list[BuiltIndex]:
    """The indexes that a backfill builds; `table` knows them already."""
    through = seen_through(table, op.source_id)
    return [_target(table, through, index_id) for index_id in op.index_ids]


def _target(table: Table, through: Table, index_id: IndexId) -> BuiltIndex:
    """A new primary index is seen as one; others end with the key of the index that they are built from."""
    for index in table.coming:
        if index.id == index_id:
            return BuiltIndex(seen_through(table, index_id), index)
    return BuiltIndex(through, next(index for index in through.secondary if index.id == index_id))
