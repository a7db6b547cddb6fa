"""Kernels over a node: the snapshot that they read is pinned in the node's registry.

**Invariant:** while a kernel reads as of a sequence, the node's live mark does not exceed that sequence, so nothing
that it needs is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.sequences import limits_of
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Column
from seachange.model.schema.objects import Descriptor, Sequence
from seachange.pipeline.kernels.source import RowSources
from seachange.pipeline.local_kernels import LocalPipeline
from seachange.sql.duck.default_text import resolve_default
from seachange.sql.translate.duck_errors import translate_error

FindObject = Callable[[DescriptorId], Descriptor | None]


def local_pipeline(
    parts: NodeParts,
    epoch: EpochState,
    interrupts: SessionInterrupts,
    find_object: FindObject | None = None,
    rows_read: RowSources | None = None,
) -> LocalPipeline:
    """`find_object` gives the sequences of defaults, by default those at the head; `rows_read` are the rows, by default
    the committed ones."""

    def find_newest(id_: DescriptorId) -> Descriptor | None:
        return epoch.schemas.newest.objects.get(id_)

    def numbered(sequence_id: DescriptorId, rows: int) -> str:
        return _numbered(parts, (find_object or find_newest)(sequence_id), rows)

    @contextmanager
    def hold(at: Seq) -> Iterator[None]:
        ticket = epoch.registry.enter_below(at)
        try:
            yield
        finally:
            epoch.registry.leave(ticket)

    def resolved(column: Column, rows: int) -> str:
        if column.is_row_id:
            return f"{parts.rowids.take(epoch.epoch, rows)} + rowid"
        return resolve_default(column, parts.clock.wall_us(), lambda sequence_id: numbered(sequence_id, rows))

    return LocalPipeline(
        parts.catalog,
        epoch.epoch,
        parts.warehouse,
        parts.data / "tmp",
        hold,
        interrupts,
        translate_error,
        resolved,
        connect=parts.sorts.connect,
        rows_read=rows_read,
    )


def _numbered(parts: NodeParts, sequence: Descriptor | None, rows: int) -> str:
    """An expression for the sequence value of each row, by row number."""
    if not isinstance(sequence, Sequence):
        raise errors.UndefinedObject(kind="sequence", name="of a default")
    limits = limits_of(sequence)
    block = parts.catalog.draw_sequence(sequence.id, sequence.run, limits, max(rows, 1))
    value = f"{block.first} + {block.increment} * rowid"
    if block.count >= rows:
        return value
    # The sequence cycles, possibly more than once, and ends where the last row has left it. A sequence that does not
    # cycle raises an error here.
    after = (rows - block.count - 1) % limits.period + 1
    again = parts.catalog.draw_sequence(sequence.id, sequence.run, limits, after)
    place = f"(rowid - {block.count} + {(again.first - limits.lowest) // limits.increment}) % {limits.period}"
    return f"CASE WHEN rowid < {block.count} THEN {value} ELSE {limits.lowest} + {limits.increment} * ({place}) END"
