"""Maintenance of a node in the background: compaction of indexes that have grown, garbage collection, and exports.

**Invariant:** nothing here blocks or fails a reader or a writer: a compaction reads a snapshot like any other
transaction and is published by compare-and-set; losing the race only wastes the work.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from seachange import errors
from seachange.engine.context.background import Alarm
from seachange.engine.context.problem_log import log_internal
from seachange.engine.exports.table_exports import TableExports
from seachange.engine.feed.feed_lag import end_lagging
from seachange.engine.replica.committer import Submission
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_epoch import NodeEpoch
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import CommitId, SegmentId, Seq
from seachange.model.log import CommitRequest, Committed, GenerationChange
from seachange.model.schema.descriptor import Index, Table
from seachange.pipeline.compaction.deltas import Compacted, compact_deltas
from seachange.pipeline.compaction.gc import collect_garbage
from seachange.pipeline.compaction.migration import migrates_now
from seachange.pipeline.reservation import reserve_files
from seachange.runtime.faults import reach
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_size
from seachange.storage.image import IndexImage

# An index is compacted when its image holds this many inline rows, or delta files ...
COMPACT_ROWS_MIN = 32_768
COMPACT_FILES_MIN = 8
# ... or inline rows this many commits old: the catalog keeps history until they are compacted.
COMPACT_AGE_SEQS = 100_000
# The time between two rounds of compaction, and of garbage collection.
COMPACTION_US = 500_000
COLLECTION_US = 30_000_000
# How often it is checked whether rows of older layouts are to be migrated.
MIGRATION_US = 5_000_000
# How often it is checked whether a table is to be exported.
EXPORT_US = 1_000_000


def compact_index(
    parts: NodeParts, epoch: EpochState, table: Table, index: Index, full: bool, migrates: bool = False
) -> bool:
    """Compacts the deltas of one index up to now; False if there are none, or if another node was faster. `migrates`:
    also without deltas, for rows of older layouts."""
    with parts.compaction_locks.holding(epoch.epoch, index.id) as is_ours:
        if not is_ours:
            return False
        ticket = epoch.registry.enter()
        began_us = parts.clock.steady_us()
        try:
            upto = epoch.catch_up()
            epoch.registry.move(ticket, upto)
            is_done = _compact_and_swap(parts, epoch, table, index, upto, full, migrates)
        finally:
            epoch.registry.leave(ticket)
    if is_done:
        took_ms = (parts.clock.steady_us() - began_us) // 1_000
        parts.log.info("compaction", table=table.full_name, index=index.name, upto=upto, duration_ms=took_ms)
    return is_done


def _compact_and_swap(
    parts: NodeParts, epoch: EpochState, table: Table, index: Index, upto: Seq, full: bool, migrates: bool
) -> bool:
    # Rows are rewritten in the layout of the descriptor at `upto`.
    current = epoch.schema(upto).by_id.get(table.id)
    if current is None or index.id not in current.index_by_id:
        return False
    image = epoch.image(current, current.index_by_id[index.id], upto)
    # An index without a base is under construction: a generation made from its deltas would hide the backfill.
    if image.generation is None or not (image.inline_rows or image.delta_segments or full or migrates):
        return False

    reserved: list[SegmentId] = []

    def reserve(count: int) -> list[SegmentId]:
        ids = reserve_files(parts.catalog, epoch.epoch, parts.files, count)
        reserved.extend(ids)
        return ids

    try:
        spill, connect = parts.data / "tmp", parts.sorts.connect
        compacted = compact_deltas(
            current, index, image.parts(upto), parts.warehouse, reserve, spill, connect, full, migrates
        )
    except Exception:
        with suppress(errors.Error):
            parts.catalog.abandon_segments(epoch.epoch, reserved)
        raise
    if compacted.members == image.generation.members:
        return False
    return _swap(parts, epoch, image, upto, compacted)


def _swap(parts: NodeParts, epoch: EpochState, image: IndexImage, upto: Seq, compacted: Compacted) -> bool:
    request = CommitRequest(
        commit_id=CommitId(parts.entropy.token(16)),
        validated=upto,
        oldest=upto,
        generations=(GenerationChange(image.shape.index_id, image.generation_id, upto, compacted.members),),
    )
    outcome = epoch.committer.submit(Submission(request))
    if isinstance(outcome, Committed):
        reach("compaction.swapped")
        return True
    parts.catalog.abandon_segments(epoch.epoch, [segment.id for segment in compacted.written])
    return False


def has_grown(image: IndexImage, applied: Seq) -> bool:
    return (
        image.inline_rows >= COMPACT_ROWS_MIN
        or image.delta_segments >= COMPACT_FILES_MIN
        or image.oldest_inline + COMPACT_AGE_SEQS < applied
    )


_FEED_LIMIT = "seachange.feed_limit"


class NodeMaintenance:
    """`paused` disables compaction, for measurements."""

    def __init__(self, epoch: NodeEpoch, exports: TableExports) -> None:
        self._parts = epoch.parts
        self._epoch = epoch
        self._alarm = Alarm()
        self._exports = exports
        self.paused = False
        self.compactions = 0
        self._is_stopped = False
        now_us = epoch.parts.clock.steady_us()
        self._compaction_due_us = now_us + COMPACTION_US
        self._collection_due_us = now_us + COLLECTION_US
        self._export_due_us = now_us + EXPORT_US
        self._migration_due_us = now_us + MIGRATION_US
        # The failure that was logged last.
        self._logged = ""

    def step(self, now_us: int) -> int:
        if now_us >= self._compaction_due_us:
            if not self.paused:
                self._attempt(self.compact_grown)
            self._compaction_due_us = now_us + COMPACTION_US
        if now_us >= self._collection_due_us:
            self._attempt(self.collect)
            self._collection_due_us = now_us + COLLECTION_US
        if now_us >= self._export_due_us:
            self._attempt(self._exports.export_due)
            self._export_due_us = now_us + EXPORT_US
        if now_us >= self._migration_due_us:
            if not self.paused:
                self._attempt(self.migrate_older)
            self._migration_due_us = now_us + MIGRATION_US
        return min(self._compaction_due_us, self._collection_due_us, self._export_due_us, self._migration_due_us)

    def wait(self, seconds: float) -> None:
        self._alarm.wait(seconds)

    def wake(self) -> None:
        """Only to stop: a running compaction is the last."""
        self._is_stopped = True
        self._alarm.wake()

    def _attempt(self, work: Callable[[EpochState], object]) -> None:
        """A failure is retried in a later round: it costs space, never a wrong answer."""
        try:
            work(self._epoch.current)
        except errors.Error:
            return
        except Exception as problem:  # noqa: BLE001 - without this thread nothing would be compacted or collected
            self._log(problem)

    def _log(self, problem: Exception) -> None:
        text = f"maintenance of a node failed: {type(problem).__name__}: {problem}"
        # A failure that recurs in every round is logged once.
        if self._logged != text:
            log_internal(self._parts.log, self._parts.entropy, problem, "the maintenance of the node")
            with suppress(errors.Error):
                self._parts.catalog.log_event(text)
                self._logged = text

    def compact_grown(self, epoch: EpochState) -> None:
        """Compacts every index that has grown; raises the first failure after all of them."""
        problems: list[Exception] = []
        for table in tuple(epoch.schemas.newest.by_id.values()):
            for index in table.indexes:
                image = epoch.images.current(index.id, epoch.applied)
                if self._is_stopped:
                    return
                if image is not None and has_grown(image, epoch.applied):
                    try:
                        self.compactions += compact_index(self._parts, epoch, table, index, full=False)
                    except Exception as problem:  # noqa: BLE001 - it is raised in the end
                        problems.append(problem)
        if problems:
            raise problems[0]

    def migrate_older(self, epoch: EpochState) -> None:
        """Migrates rows of older layouts as each table says. What an index stores is the same in all layouts."""
        for table in tuple(epoch.schemas.newest.by_id.values()):
            image = epoch.images.current(table.primary.id, epoch.applied)
            if self._is_stopped:
                return
            if image is None or image.generation is None or not image.has_other_layouts(table.layout.id):
                continue
            is_met = table.primary.id in self._parts.layouts_met
            if migrates_now(table, image.parts(epoch.applied), is_met):
                self.compactions += compact_index(self._parts, epoch, table, table.primary, False, migrates=True)
            self._parts.layouts_met.discard(table.primary.id)

    def collect(self, epoch: EpochState) -> int:
        try:
            self._exports.forget_expired()
        finally:
            # Exports that cannot be deleted hold back nothing else.
            collected = self._collect_files(epoch)
        return collected

    def _collect_files(self, epoch: EpochState) -> int:
        self._parts.warehouse.tidy()
        end_lagging(self._parts.catalog, epoch, parse_size(SessionSettings(self._parts.settings).get(_FEED_LIMIT)))
        files = collect_garbage(self._parts.catalog, epoch.epoch, self._parts.warehouse, self._parts.retention.us)
        if files:
            self._parts.log.info("garbage collection", files=files)
        return files
