"""Compaction of deltas into a new generation.

Inline rows become a sorted segment. Segments that stay are kept with the positions that deltas have superseded. Small
ones are merged with the new rows, so that their number grows with the logarithm of the table. Segments with many
superseded rows are rewritten, and so is a small remainder of older layouts. Kept segments are not copied.

**Invariant:** the members show, at sequence C, exactly the rows that generation and deltas showed at C. Rewritten rows
are read with the descriptor at C: every column of its layout by id, columns that a row's layout lacks as the frozen
value.

**Invariant:** an index without a generation is never compacted: a generation made of its deltas would hide a running
backfill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seachange.model.ids import LayoutId
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import GenerationMember, Segment
from seachange.pipeline.compaction.migration import (
    DEFAULT_MIGRATION,
    REWRITE_ROWS_MAX,
    MigrationOptions,
    choose_older,
    live_rows,
    read_migration,
)
from seachange.pipeline.kernels.runs import base_shape
from seachange.runtime.faults import reach
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.plan import plan_rewrite
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX
from seachange.storage.segment_writer import Reserve
from seachange.storage.sorter import Sorter
from seachange.storage.spill import Connect
from seachange.storage.warehouse import Warehouse

# A segment is rewritten when more than this share of its rows is superseded.
SUPERSEDED_SHARE_MAX = 0.2
# A small segment joins a merge when it is at most this many times as large as the rest of the merge.
MERGE_FACTOR = 2


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The files that stay as they are, and the files that are rewritten together with the inline rows."""

    kept: tuple[FileSlice, ...]
    rewritten: tuple[FileSlice, ...]


def plan_compaction(
    parts: SnapshotParts,
    full: bool,
    layout_id: LayoutId,
    migration: MigrationOptions = DEFAULT_MIGRATION,
    is_met: bool = False,
) -> CompactionPlan:
    """The choice of what to rewrite in this layout, as a pure function. `full` takes all files that have superseded
    rows, overlap another, or are of another layout. `is_met`: a scan has met rows of another layout."""
    inline = sum(table.num_rows for _, table in parts.inline)
    chosen = _overlapping(parts.files) if full else _worth_rewriting(parts.files, inline)
    ids = {file.segment.id for file in chosen}
    older = [f for f in parts.files if f.segment.layout_id != layout_id and live_rows(f)]
    migrated = older if full else choose_older(older, parts.files, migration, is_met)
    chosen += [file for file in migrated if file.segment.id not in ids]
    ids.update(file.segment.id for file in migrated)
    kept = tuple(f for f in parts.files if f.segment.id not in ids and live_rows(f))
    return CompactionPlan(kept, tuple(chosen))


def _worth_rewriting(files: tuple[FileSlice, ...], inline_rows: int) -> list[FileSlice]:
    chosen: list[FileSlice] = []
    rows = 0
    for file in files:
        share = len(file.superseded) / file.segment.rows
        if live_rows(file) and share > SUPERSEDED_SHARE_MAX and rows + live_rows(file) <= REWRITE_ROWS_MAX:
            chosen.append(file)
            rows += live_rows(file)
    rows += inline_rows
    rest = [f for f in files if f not in chosen and live_rows(f) and f.segment.rows < SEGMENT_ROWS_MAX // 2]
    for file in sorted(rest, key=live_rows):
        if live_rows(file) > MERGE_FACTOR * rows or rows + live_rows(file) > REWRITE_ROWS_MAX:
            break
        chosen.append(file)
        rows += live_rows(file)
    return chosen


def _overlapping(files: Iterable[FileSlice]) -> list[FileSlice]:
    """Files with superseded rows, small files, and files whose key range overlaps another."""
    ordered = sorted((f for f in files if live_rows(f)), key=lambda f: f.segment.key_min)
    chosen = {f.segment.id: f for f in ordered if len(f.superseded) or f.segment.rows < SEGMENT_ROWS_MAX // 2}
    highest: FileSlice | None = None
    for file in ordered:
        if highest is not None and file.segment.key_min <= highest.segment.key_max:
            chosen[file.segment.id] = file
            chosen[highest.segment.id] = highest
        if highest is None or file.segment.key_max > highest.segment.key_max:
            highest = file
    return list(chosen.values()) if len(chosen) > 1 or any(len(f.superseded) for f in chosen.values()) else []


@dataclass(frozen=True, slots=True)
class Compacted:
    """The members of the new generation, and which of their segments are new."""

    members: tuple[GenerationMember, ...]
    written: tuple[Segment, ...]


def compact_deltas(
    table: Table,
    index: Index,
    parts: SnapshotParts,
    warehouse: Warehouse,
    reserve: Reserve,
    spill: Path,
    connect: Connect,
    full: bool = False,
    is_met: bool = False,
) -> Compacted:
    """Writes the new segments and returns the members of the generation that replaces `parts`."""
    plan = plan_compaction(parts, full, table.layout.id, read_migration(table), is_met)
    reach("compaction.planned")
    written: list[Segment] = []
    if plan.rewritten or parts.inline:
        scan = plan_rewrite(table, index, SnapshotParts(plan.rewritten, parts.inline), warehouse, "fold")
        with Sorter(warehouse.files, spill, reserve, connect=connect) as sorter:
            written = sorter.sort_scan(scan, base_shape(table, index))
        warehouse.remember(written)
    members = [*kept_members(plan.kept), *(GenerationMember(segment) for segment in written)]
    reach("compaction.written")
    return Compacted(tuple(members), tuple(written))


def kept_members(files: Iterable[FileSlice]) -> list[GenerationMember]:
    """Files that stay, with their superseded rows marked as deleted."""
    return [GenerationMember(f.segment, np.sort(f.superseded).astype("<u4").tobytes()) for f in files]
