"""Committed rows under the uncommitted writes of one transaction: what its constraints are validated over.

**Invariant:** the rows are those that a commit of the transaction right after the sequence would leave. Units of such a
source are never recorded: their names do not say what the transaction has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seachange.model.ids import IndexId, LayoutId, Seq
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import IndexDelta, Segment
from seachange.pipeline.kernels.source import IndexSource, Sources

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """What a transaction has written to one index: the files of bulk writes, then rows in memory, which replace rows of
    the files too, each with its operation."""

    layout_id: LayoutId
    segments: tuple[Segment, ...]
    ops: tuple[int, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class OverlaidSources:
    committed: Sources
    own: Mapping[IndexId, OwnWrites]

    def tables(self) -> dict[int, Table]:
        return self.committed.tables()

    def load(self, table: Table, index: Index) -> IndexSource:
        own = self.own.get(index.id)
        if own is None:
            return self.committed.load(table, index)
        image, generation_id = self.committed.open(table, index)
        files, rows = Seq(self.committed.at + 1), Seq(self.committed.at + 2)
        image.apply(IndexDelta(files, (), own.segments))
        image.apply_rows(rows, own.layout_id, own.ops, own.rows)
        return IndexSource(table, index, generation_id, image.parts(rows))
