"""Compaction and migration of layouts by an executor: groups of segments are read, sorted and rewritten in units whose
results are kept, like those of a backfill.

**Invariant:** rows are copied by column id; nothing is computed, whatever the state of a column.

**Invariant:** a generation is returned only if its rows are those that were read, in number and by the sum of their
hashes, and as many as the files and the catalog have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from seachange import errors
from seachange.model.change.vacuum import Rewritten
from seachange.model.change.work import UnitDone
from seachange.model.ids import LayoutId
from seachange.model.scan import Scan
from seachange.model.segments import Generation, GenerationMember
from seachange.pipeline.compaction.deltas import kept_members, plan_compaction
from seachange.pipeline.kernels.backfill import BackfillWork, Report, UnitRead
from seachange.pipeline.kernels.executor import Executor, Sizes
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.runs import BuiltIndex, Run, tally_of
from seachange.pipeline.kernels.source import IndexSource, Unit, size_of
from seachange.pipeline.kernels.tasks import segments_for
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import KeyCodec
from seachange.storage.plan import plan_rewrite
from seachange.storage.warehouse import Warehouse
from seachange.values.types import ENCODED_AS_GIVEN

_ROWS = "unit_rows"


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """The compaction of one index: `source` has the parts that are rewritten, and `kept` are the files that stay."""

    source: IndexSource
    kept: tuple[FileSlice, ...]

    @property
    def target(self) -> BuiltIndex:
        return BuiltIndex(self.source.table, self.source.index)


def choose_compaction(source: IndexSource, newest: Generation | None, full: bool) -> CompactUnit | None:
    """None if there is nothing to rewrite, or a newer generation exists."""
    if newest is None or newest.id != source.generation_id:
        return None
    plan = plan_compaction(source.parts, full, source.table.layout.id)
    inline = source.parts.inline
    if not plan.rewritten and not inline and tuple(kept_members(plan.kept)) == newest.members:
        return None
    return CompactUnit(replace(source, parts=SnapshotParts(plan.rewritten, inline)), plan.kept)


def rewrite(
    compact_unit: CompactUnit, executor: Executor, warehouse: Warehouse, done: Sequence[UnitDone], report: Report
) -> Rewritten:
    source, target = compact_unit.source, compact_unit.target
    sizes = executor.sizes(source.rows)
    reads = [
        UnitRead(f"fold-{unit.name}", unit.rows, partial(RewriteRuns, target, unit))
        for unit in compaction_units(source, sizes)
    ]
    work = BackfillWork(executor, warehouse, {unit.unit: unit for unit in done}, report, sizes)
    (built,) = work.build(reads, [target])
    written = sum(member.segment.rows for member in built.members)
    if written != source.rows:
        raise errors.Bug(
            detail=f"{written} entries of index {target.index.name} of {target.table.name} were written for "
            f"{source.rows} that are there"
        )
    members: list[GenerationMember] = [*kept_members(compact_unit.kept), *built.members]
    return Rewritten(target.index.id, target.index.name, source.generation_id, tuple(members))


def compaction_units(source: IndexSource, sizes: Sizes) -> list[Unit]:
    """The units of the source, with inline rows assigned to the unit in whose key range they are. In a unit of their
    own they would overlap all others, and all rows would be written twice."""
    units = source.units(sizes.unit_rows)
    files = [unit for unit in units if unit.parts.files]
    key = source.table.stored_columns(source.index, source.table.layout)[: len(source.table.entry_key(source.index))]
    if not source.parts.inline or not files or any(type_.kind not in ENCODED_AS_GIVEN for _, type_ in key):
        return units
    codec = KeyCodec([type_ for _, type_ in key])
    lowest = [min(file.segment.key_min for file in unit.parts.files) for unit in files]
    shares: list[list[tuple[LayoutId, pa.Table]]] = [[] for _ in files]
    for layout_id, table in source.parts.inline:
        values = zip(*(table.column(column_name(c)).to_pylist() for c, _ in key), strict=True)
        places = [max(bisect_right(lowest, codec.encode(value)) - 1, 0) for value in values]
        for place in sorted(set(places)):
            chosen = table.take([row for row, of in enumerate(places) if of == place])
            shares[place].append((layout_id, chosen))
    return [_joined(unit, tuple(share)) for unit, share in zip(files, shares, strict=True)]


def _joined(unit: Unit, inline: tuple[tuple[LayoutId, pa.Table], ...]) -> Unit:
    return replace(unit, name=f"{unit.name}-inline", parts=replace(unit.parts, inline=inline)) if inline else unit


@dataclass(frozen=True, slots=True)
class RewriteRuns:
    """The rows of a unit in the newest layout. Files with adjacent keys are in one unit, so that its output usually
    needs no merge."""

    target: BuiltIndex
    unit: Unit

    @property
    def title(self) -> str:
        return f"rewrite {self.unit.rows} rows of {self.target.index.name}"

    @property
    def segments(self) -> int:
        return segments_for(self.unit.rows, self.read_bytes)

    @property
    def read_bytes(self) -> int:
        return size_of(self.unit.parts)

    @property
    def write_bytes(self) -> int:
        return self.read_bytes

    @property
    def steps(self) -> int:
        return 3

    def run(self, kernel_context: KernelContext) -> list[Run]:
        target = self.target
        scan = plan_rewrite(target.table, target.index, self.unit.parts, kernel_context.warehouse, "fold")
        with kernel_context.sorter() as sorter:
            # Kept as a table, since it is counted and then sorted.
            sorter.keep(_ROWS, scan.sql, scan)
            rows = f"SELECT * FROM {_ROWS}"  # noqa: S608 - the relation is ours
            tally = tally_of(sorter, target, Scan(rows))
            segments = sorter.sort_query(rows, {}, target.shape) if tally.entries else []
        kernel_context.warehouse.remember(segments)
        return [Run(target.index.id, tally, tuple(segments))]
