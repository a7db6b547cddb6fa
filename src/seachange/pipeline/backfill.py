"""Generations of indexes from the rows of another: in units whose work is kept, then merged by ranges of keys.

**Invariant:** each unit, of reading or of merging, is named after what it reads, and what it wrote is used again only
under that name and only if its files are whole. So whatever subset of units an earlier attempt has finished, the result
is the same.

**Invariant:** no generation is given whose entries are not, in number and by the sum of their hashes, those of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seachange import errors
from seachange.model.segments import GenerationMember, Segment
from seachange.model.work import Built, UnitDone
from seachange.pipeline.merge import RANGE_ROWS_MAX, KeyRange, merge_range, plan_merge, tally_segments, total
from seachange.pipeline.runs import Run, Tally, Target, build_runs, decode_runs, encode_runs
from seachange.pipeline.source import UNIT_ROWS_MAX, Source, Unit
from seachange.pipeline.workshop import Workshop
from seachange.storage.warehouse import Warehouse

Report = Callable[[UnitDone], None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows a unit reads, and about how many a range has."""

    unit_rows: int = UNIT_ROWS_MAX
    range_rows: int = RANGE_ROWS_MAX


def backfill(
    source: Source,
    targets: Sequence[Target],
    workshop: Workshop,
    done: Sequence[UnitDone],
    report: Report,
    sizes: Sizes | None = None,
) -> tuple[Built, ...]:
    sizes = sizes or Sizes()
    kept = {unit.unit: unit for unit in done}
    runs: list[Run] = []
    units = source.units(sizes.unit_rows)
    for unit in units:
        runs += _unit(source, unit, targets, workshop, kept, report)
    return tuple(
        _generation(target, [r for r in runs if r.index_id == target.index.id], workshop, kept, report, sizes)
        for target in targets
    )


def _unit(
    source: Source,
    unit: Unit,
    targets: Sequence[Target],
    workshop: Workshop,
    kept: dict[str, UnitDone],
    report: Report,
) -> Sequence[Run]:
    # Which indexes are built is part of the work, and so of its name.
    name = "-".join([unit.name, *(str(t.index.id) for t in targets)])
    workshop.interrupts.check()
    found = kept_runs(kept.get(name), workshop.warehouse)
    if found is not None:
        return found
    runs = build_runs(source, unit, targets, workshop)
    report(_done(name, runs, unit.rows))
    return runs


def _done(name: str, runs: Sequence[Run], rows: int) -> UnitDone:
    return UnitDone(name, tuple(s.id for run in runs for s in run.segments), encode_runs(runs), rows)


def kept_runs(unit: UnitDone | None, warehouse: Warehouse) -> tuple[Run, ...] | None:
    """What a finished unit has written; None if there is no such unit, or a file of it is not whole."""
    if unit is None:
        return None
    try:
        runs = decode_runs(unit.output)
        warehouse.paths(segment for run in runs for segment in run.segments)
    except errors.SegmentDamaged:
        # Files of a backfill are nobody's data yet: the work is done again.
        return None
    return runs


def _generation(
    target: Target,
    runs: Sequence[Run],
    workshop: Workshop,
    kept: dict[str, UnitDone],
    report: Report,
    sizes: Sizes,
) -> Built:
    segments, ranges = plan_merge(target, runs, workshop, sizes.range_rows)
    for part in ranges:
        segments = [*segments, *_merged(target, part, workshop, kept, report)]
    workshop.interrupts.check()
    expected, found = total(runs), tally_segments(target, segments, workshop)
    if expected != found:
        raise errors.Bug(
            detail=f"index {target.index.name} of {target.table.name} was built with {found.entries} entries for "
            f"{expected.entries} rows, or with other values"
        )
    ordered = sorted(segments, key=lambda segment: segment.key_min)
    return Built(target.index.id, tuple(GenerationMember(segment) for segment in ordered))


def _merged(
    target: Target, part: KeyRange, workshop: Workshop, kept: dict[str, UnitDone], report: Report
) -> Sequence[Segment]:
    name = part.name(target)
    workshop.interrupts.check()
    found = kept_runs(kept.get(name), workshop.warehouse)
    if found is None:
        segments = merge_range(target, part, workshop)
        found = (Run(target.index.id, Tally(sum(s.rows for s in segments), 0), tuple(segments)),)
        report(_done(name, found, 0))
    return [segment for run in found for segment in run.segments]
