"""Deleting the files that nothing can reach any more.

The catalog decides, by marks and intents; the files go first and their rows in the catalog after, so that a crash in
between leaves garbage that is found again, never a row without its file.
"""

from __future__ import annotations

from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch
from seachange.runtime.faults import reach
from seachange.storage.warehouse import Warehouse

GC_CLAIM = "gc"


def collect_garbage(catalog: Catalog, epoch: Epoch, warehouse: Warehouse, retention_us: int) -> int:
    """Gives the number of segments whose files were deleted; 0 when another node is at it."""
    if not catalog.claim(epoch, GC_CLAIM):
        return 0
    try:
        catalog.expire_nodes()
        ids = catalog.collect(epoch, retention_us)
        reach("gc.collected")
        for segment_id in ids:
            warehouse.delete(segment_id)
            reach("gc.deleted")
        if ids:
            # Forgotten by the catalog and brought back by a power cut, a file would stay for ever.
            warehouse.files.settle()
        catalog.forget_files(ids)
        reach("gc.forgotten")
        return len(ids)
    finally:
        catalog.release(epoch, GC_CLAIM)
