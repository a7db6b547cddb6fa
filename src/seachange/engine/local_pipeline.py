"""The kernels over a node: what they read is held in the node's registry while they do.

**Invariant:** as long as a kernel reads as of a sequence, no live mark of this node is above it, so nothing that it
needs is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seachange.engine.epoch import EpochState
from seachange.engine.interrupts import Interrupts
from seachange.engine.nodeparts import NodeParts
from seachange.model.descriptor import Column
from seachange.model.ids import Seq
from seachange.pipeline.local import LocalPipeline
from seachange.sql.default_text import settle_moments
from seachange.sql.duck_errors import translate_error


def local_pipeline(parts: NodeParts, epoch: EpochState, interrupts: Interrupts) -> LocalPipeline:
    @contextmanager
    def hold(at: Seq) -> Iterator[None]:
        ticket = epoch.registry.enter_below(at)
        try:
            yield
        finally:
            epoch.registry.leave(ticket)

    def settle(column: Column, rows: int) -> str:
        del rows
        return settle_moments(column.default or "", parts.clock.wall_us())

    return LocalPipeline(
        parts.catalog, epoch.epoch, parts.warehouse, parts.data / "tmp", hold, interrupts, translate_error, settle
    )
