"""Garbage collection: deletes the files that nothing can reach any more.

The catalog decides, by marks and intents. Files are deleted before their rows in the catalog, so that a crash in
between leaves garbage that is found again, never a row without its file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, SegmentId
from seachange.pipeline.kernels.executor import Executor
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.reading import WritesNothing
from seachange.runtime.faults import reach
from seachange.storage.warehouse import Warehouse

GC_CLAIM = "gc"
# The number of files that one task deletes.
UNIT_FILES = 256


def collect_garbage(
    catalog: Catalog,
    epoch: Epoch,
    warehouse: Warehouse,
    retention_us: int,
    executor_factory: Callable[[int], Executor] | None = None,
) -> int:
    """Returns the number of segments whose files were deleted; 0 if another node is collecting. `executor_factory`
    returns an executor for a number of files; without it, they are deleted here."""
    # Before the claim is asked for: a node that was killed while it had it keeps it until its epoch is ended.
    end_dead_nodes(catalog)
    if not catalog.claim(epoch, GC_CLAIM):
        return 0
    try:
        ids = catalog.collect(epoch, retention_us)
        reach("gc.collected")
        forget = partial(_forget, catalog)
        if executor_factory is None:
            delete_segments(ids, warehouse)
            forget(ids)
        else:
            delete_by(executor_factory(len(ids)), ids, forget, warehouse)
        return len(ids)
    finally:
        catalog.release(epoch, GC_CLAIM)


def _forget(catalog: Catalog, ids: Sequence[SegmentId]) -> None:
    catalog.forget_files(ids)
    reach("gc.forgotten")


def delete_by(
    executor: Executor, ids: Sequence[SegmentId], forget: Callable[[Sequence[SegmentId]], None], warehouse: Warehouse
) -> None:
    """Removes the catalog rows of each finished task, so that a later run has only the rest to do."""
    tasks = [DeleteSegments(tuple(ids[first : first + UNIT_FILES])) for first in range(0, len(ids), UNIT_FILES)]

    def deleted(number: int, _: int) -> None:
        for segment_id in tasks[number].ids:
            warehouse.forget(segment_id)
        forget(tasks[number].ids)

    executor.run(tasks, deleted)


def delete_segments(ids: Sequence[SegmentId], warehouse: Warehouse) -> None:
    at_once = warehouse.files.deletions_at_once
    for first in range(0, len(ids), at_once):
        warehouse.delete(ids[first : first + at_once])
        reach("gc.deleted")
    if ids:
        # A power cut could restore a file that the catalog has forgotten, and it would stay for ever.
        warehouse.files.sync_deletions()


@dataclass(frozen=True, slots=True)
class DeleteSegments(WritesNothing):
    """Idempotent: a second run finds nothing to delete."""

    ids: tuple[SegmentId, ...]
    read_bytes: int = 0

    @property
    def title(self) -> str:
        return f"delete {len(self.ids)} files"

    def run(self, kernel_context: KernelContext) -> int:
        delete_segments(self.ids, kernel_context.warehouse)
        return len(self.ids)
