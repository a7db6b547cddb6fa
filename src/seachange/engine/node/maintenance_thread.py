"""The node's housekeeping: compaction when deltas have grown, garbage collection now and then, in the background.

**Invariant:** nothing here blocks or fails a reader or a writer: a fold reads a snapshot like any other transaction and
is published by compare-and-set; losing the race only wastes the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from seachange import errors
from seachange.engine.context.retention import Retention
from seachange.engine.replica.committer import Submission
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import CommitId, SegmentId, Seq
from seachange.model.log import CommitRequest, Committed, GenerationChange
from seachange.model.schema.descriptor import Index, Table
from seachange.pipeline.compaction.deltas import Compacted, fold
from seachange.pipeline.compaction.gc import collect_garbage
from seachange.runtime.faults import reach
from seachange.storage.image import IndexImage

CurrentEpoch = Callable[[], EpochState]

# An index is folded when its image holds so many inline rows, or as many delta files.
FOLD_ROWS_MIN = 32_768
FOLD_FILES_MIN = 8
# ... or inline rows that have been in the catalog for so many commits: it keeps history until they are folded.
FOLD_AGE_SEQS = 100_000
_ROUND_SECONDS = 0.5
_ROUNDS_PER_GC = 60


def compact_index(parts: NodeParts, epoch: EpochState, table: Table, index: Index, full: bool) -> bool:
    """Folds the deltas of one index up to now; False when there is nothing to fold or another node was faster."""
    with parts.folds.holding(epoch.epoch, index.id) as is_ours:
        if not is_ours:
            return False
        ticket = epoch.registry.enter()
        try:
            upto = epoch.catch_up()
            epoch.registry.move(ticket, upto)
            return _fold_and_swap(parts, epoch, table, index, upto, full)
        finally:
            epoch.registry.leave(ticket)


def _fold_and_swap(parts: NodeParts, epoch: EpochState, table: Table, index: Index, upto: Seq, full: bool) -> bool:
    # The descriptor as of the sequence that is folded up to: its layout is the one that rows are rewritten in.
    current = epoch.schema(upto).by_id.get(table.id)
    if current is None or index.id not in current.index_by_id:
        return False
    image = epoch.image(current, current.index_by_id[index.id], upto)
    # An index without a base is under construction: a generation made of its deltas would hide the backfill.
    if image.generation is None or not (image.inline_rows or image.delta_segments or full):
        return False

    reserved: list[SegmentId] = []

    def reserve(count: int) -> list[SegmentId]:
        ids = [SegmentId(i) for i in parts.catalog.reserve_segments(epoch.epoch, count)]
        reserved.extend(ids)
        reach("segment.reserved")
        return ids

    try:
        spill, connect = parts.data / "tmp", parts.sorts.connect
        folded = fold(current, index, image.parts(upto), parts.warehouse, reserve, spill, connect, full)
    except Exception:
        with suppress(errors.Error):
            parts.catalog.abandon_segments(epoch.epoch, reserved)
        raise
    if folded.members == image.generation.members:
        return False
    return _swap(parts, epoch, image, upto, folded)


def _swap(parts: NodeParts, epoch: EpochState, image: IndexImage, upto: Seq, folded: Compacted) -> bool:
    request = CommitRequest(
        commit_id=CommitId(parts.entropy.token(16)),
        validated=upto,
        oldest=upto,
        generations=(GenerationChange(image.shape.index_id, image.generation_id, upto, folded.members),),
    )
    outcome = epoch.committer.submit(Submission(request))
    if isinstance(outcome, Committed):
        reach("compaction.swapped")
        return True
    parts.catalog.abandon_segments(epoch.epoch, [segment.id for segment in folded.written])
    return False


def has_grown(image: IndexImage, applied: Seq) -> bool:
    return (
        image.inline_rows >= FOLD_ROWS_MIN
        or image.delta_segments >= FOLD_FILES_MIN
        or image.oldest_inline + FOLD_AGE_SEQS < applied
    )


class MaintenanceThread:
    """The background thread. `paused` keeps it from compacting while something is being measured."""

    def __init__(self, parts: NodeParts, retention: Retention) -> None:
        self._parts = parts
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.retention = retention
        self.paused = False
        self.compactions = 0
        # What was last told of that failed.
        self._noted = ""

    def start(self, current: CurrentEpoch) -> None:
        self._thread = threading.Thread(target=self._run, args=(current,), name="seachange-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, current: CurrentEpoch) -> None:
        rounds = 0
        while not self._stop.wait(_ROUND_SECONDS):
            rounds += 1
            if not self.paused:
                self._attempt(lambda: self.compact_grown(current()))
            if rounds % _ROUNDS_PER_GC == 0:
                self._attempt(lambda: self.collect(current()))

    def _attempt(self, work: Callable[[], object]) -> None:
        """It is retried in a later round: housekeeping that fails costs space, never an answer."""
        try:
            work()
        except errors.Error:
            return
        except Exception as problem:  # noqa: BLE001 - without this thread nothing would be folded or collected any more
            self._note(problem)

    def _note(self, problem: Exception) -> None:
        text = f"housekeeping of a node failed: {type(problem).__name__}: {problem}"
        # What is met in every round is told once.
        if self._noted != text:
            with suppress(errors.Error):
                self._parts.catalog.tell(text)
                self._noted = text

    def compact_grown(self, epoch: EpochState) -> None:
        """All that have grown; what one of them ran into is raised when the others are done."""
        problems: list[Exception] = []
        for table in tuple(epoch.schemas.newest.by_id.values()):
            for index in table.indexes:
                image = epoch.images.current(index.id, epoch.applied)
                if self._stop.is_set():
                    return
                if image is not None and has_grown(image, epoch.applied):
                    try:
                        self.compactions += compact_index(self._parts, epoch, table, index, full=False)
                    except Exception as problem:  # noqa: BLE001 - it is raised in the end
                        problems.append(problem)
        if problems:
            raise problems[0]

    def collect(self, epoch: EpochState) -> int:
        return collect_garbage(self._parts.catalog, epoch.epoch, self._parts.warehouse, self.retention.us)
