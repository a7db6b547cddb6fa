"""Builds index generations from the rows of another index: rows are read in units, then sorted by key ranges. Finished
units are kept.

**Invariant:** each unit, of reading or of a range, is named after what it reads, and its output is reused only under
that name and only if its files are intact. So the result is the same for whatever subset of units an earlier attempt
has finished.

**Invariant:** a generation is returned only if its entries are, in number and by the sum of their hashes, those of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import xxhash

from seachange import errors
from seachange.model.change.work import Built, UnitDone
from seachange.model.segments import GenerationMember, Segment
from seachange.pipeline.kernels import merge
from seachange.pipeline.kernels.executor import Executor, Sizes, Task, run_all
from seachange.pipeline.kernels.rebuild import ResolveDefault, keep_default, resolve_defaults
from seachange.pipeline.kernels.runs import BuiltIndex, EntrySum, Run, decode_runs, encode_runs
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.pipeline.kernels.split_points import SplitPoints
from seachange.pipeline.kernels.tasks import (
    ChooseSplitPoints,
    MergeRange,
    ReadUnit,
    SampleKeys,
    SortRange,
    TallySegments,
)
from seachange.storage.warehouse import Warehouse

Report = Callable[[UnitDone], None]


def backfill(
    source: IndexSource,
    targets: Sequence[BuiltIndex],
    executor: Executor,
    warehouse: Warehouse,
    done: Sequence[UnitDone],
    report: Report,
    resolve_default: ResolveDefault = keep_default,
    lenient: bool = False,
) -> tuple[Built, ...]:
    """`warehouse` checks which files of finished units are intact. `lenient`: see `ReadUnit`."""
    sizes = executor.sizes(source.rows)
    units = source.units(sizes.unit_rows)
    split_points = _choose_split_points(source, targets, executor, sizes) if len(units) > 1 else (None,) * len(targets)
    reads = _reads(source, units, tuple(targets), split_points, resolve_default, lenient)
    # Partitioned entries are read once more, to be sorted.
    merges = any(cut is not None for cut in split_points)
    return BackfillWork(executor, warehouse, {unit.unit: unit for unit in done}, report, sizes, merges).build(
        reads, targets
    )


@dataclass(frozen=True, slots=True)
class UnitRead:
    """A unit to read: a task turns its rows into runs. The task is created only if the unit was not finished before."""

    name: str
    rows: int
    make: Callable[[], Task[Sequence[Run]]]


def _choose_split_points(
    source: IndexSource, targets: Sequence[BuiltIndex], executor: Executor, sizes: Sizes
) -> tuple[SplitPoints | None, ...]:
    """The split points of each target, None for a target that is sorted as it is read: a primary index, which is
    usually rewritten in the order of its source, and an index on computed values, which cannot be sampled from the
    source."""
    partitioned = [target for target in targets if not target.is_computed_from(source.index)]
    ranges = -(-source.rows // sizes.range_rows)
    if not partitioned or ranges == 1:
        found = [SplitPoints(()) for _ in partitioned]
    else:
        found = run_all(executor, [ChooseSplitPoints(source, target, ranges) for target in partitioned])
    chosen = dict(zip((target.index.id for target in partitioned), found, strict=True))
    return tuple(chosen.get(target.index.id) for target in targets)


def _reads(
    source: IndexSource,
    units: Sequence[Unit],
    targets: tuple[BuiltIndex, ...],
    split_points: tuple[SplitPoints | None, ...],
    resolve_default: ResolveDefault,
    lenient: bool,
) -> list[UnitRead]:
    def make(unit: Unit) -> ReadUnit:
        resolved = resolve_defaults(source.table, unit.rows, resolve_default)
        part = replace(source, table=resolved, parts=unit.parts)
        return ReadUnit(part, unit, targets, split_points, lenient)

    # The indexes to build and their split points are part of the work, and so of its name.
    work = "-".join([*(str(t.index.id) for t in targets), xxhash.xxh3_64_hexdigest(repr(split_points).encode())])
    names = [f"{unit.name}-{work}" for unit in units]
    return [UnitRead(name, unit.rows, partial(make, unit)) for name, unit in zip(names, units, strict=True)]


def kept_runs(unit: UnitDone | None, warehouse: Warehouse) -> tuple[Run, ...] | None:
    """The runs of a finished unit; None if there is no such unit, or one of its files is damaged."""
    if unit is None:
        return None
    try:
        runs = decode_runs(unit.output)
        warehouse.paths(segment for run in runs for segment in run.segments)
        warehouse.check_shuffle_files(run.shuffle_file for run in runs if run.shuffle_file is not None)
    except errors.SegmentDamaged:
        # Files of a backfill are not attached yet: the work is done again.
        return None
    return runs


@dataclass(frozen=True, slots=True)
class BackfillWork:
    """Reads units, and sorts them by ranges where they overlap, with an executor. If it `merges` all that it reads, a
    row counts half when it is read, and half when it is sorted."""

    executor: Executor
    warehouse: Warehouse
    kept: dict[str, UnitDone]
    report: Report
    sizes: Sizes
    merges: bool = False

    def build(self, reads: Sequence[UnitRead], targets: Sequence[BuiltIndex]) -> tuple[Built, ...]:
        runs = self._read(reads)
        of_target = [[run for run in runs if run.index_id == target.index.id] for target in targets]
        pairs = list(zip(targets, of_target, strict=True))
        made = self._merge(pairs, sum(read.rows - self._counted(read) for read in reads))
        for (target, rows), found in zip(pairs, made, strict=True):
            _compare(target, merge.total(rows), merge.total(found))
        return tuple(_built(target, found) for target, found in zip(targets, made, strict=True))

    def _read(self, reads: Sequence[UnitRead]) -> list[Run]:
        """The runs of all targets."""
        runs: list[Run] = []
        left: list[UnitRead] = []
        for read in reads:
            found = kept_runs(self.kept.get(read.name), self.warehouse)
            if found is not None:
                runs += found
            else:
                left.append(read)

        counted = [self._counted(read) for read in left]

        def finished(number: int, made: Sequence[Run]) -> None:
            runs.extend(made)
            self.report(_done(left[number].name, made, counted[number]))

        self.executor.run([read.make() for read in left], finished, counted)
        return runs

    def _counted(self, read: UnitRead) -> int:
        return (read.rows + 1) // 2 if self.merges else read.rows

    def _merge(self, pairs: Sequence[tuple[BuiltIndex, Sequence[Run]]], rows: int) -> list[list[Run]]:
        """The base segments of each target, verified by reading them back. The whole merge counts as `rows` rows of
        progress."""
        made: list[list[Run]] = []
        places: list[int] = []
        tasks: list[MergeRange | SortRange] = []
        stay: list[tuple[BuiltIndex, list[Segment]]] = []
        for place, (target, runs) in enumerate(pairs):
            kept, groups = merge.plan_merge(runs)
            stay.append((target, kept))
            made.append([])
            ranges: list[MergeRange | SortRange] = [MergeRange(target, part) for part in self._ranges(target, groups)]
            ranges += [SortRange(target, part) for part in merge.shuffled_ranges(runs)]
            for task in ranges:
                name = task.part.name(target)
                found = kept_runs(self.kept.get(name), self.warehouse)
                if found is not None:
                    made[place] += found
                    rows -= self.kept[name].rows
                else:
                    places.append(place)
                    tasks.append(task)

        counted = share_out(rows, [task.part.rows for task in tasks])

        def finished(number: int, run: Run) -> None:
            made[places[number]].append(run)
            self.report(_done(tasks[number].part.name(tasks[number].target), (run,), counted[number]))

        self.executor.run(tasks, finished, counted)
        for place, run in self._read_back(stay):
            made[place].append(run)
        return made

    def _ranges(self, target: BuiltIndex, groups: Sequence[list[Segment]]) -> list[merge.KeyRange]:
        rows_max = self.sizes.range_rows
        step = merge.sample_step(rows_max)
        ranges = [merge.whole_range(group) for group in groups if merge.is_small(group, rows_max)]
        large = [group for group in groups if not merge.is_small(group, rows_max)]
        sampled = run_all(self.executor, [SampleKeys(target, tuple(group), step) for group in large])
        for group, samples in zip(large, sampled, strict=True):
            ranges += merge.cut_ranges(target, group, samples, step, rows_max)
        return ranges

    def _read_back(self, pairs: Sequence[tuple[BuiltIndex, Sequence[Segment]]]) -> Iterator[tuple[int, Run]]:
        """The base segments that need no merge, each with the place of its target."""
        places: list[int] = []
        tasks: list[TallySegments] = []
        for place, (target, segments) in enumerate(pairs):
            for part in _parts(segments, self.sizes.unit_rows):
                places.append(place)
                tasks.append(TallySegments(target, tuple(part)))
        for place, task, found in zip(places, tasks, run_all(self.executor, tasks), strict=True):
            yield place, Run(task.target.index.id, found, task.written)


def share_out(rows: int, weights: Sequence[int]) -> list[int]:
    """Distributes `rows` in proportion to the weights.

    >>> share_out(10, [1, 1, 2]), share_out(10, []), share_out(0, [5])
    ([2, 3, 5], [], [0])
    """
    whole = max(sum(weights), 1)
    ends = [rows * upto // whole for upto in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _parts(segments: Sequence[Segment], rows_max: int) -> Iterator[list[Segment]]:
    part: list[Segment] = []
    for segment in segments:
        if part and sum(s.rows for s in part) + segment.rows > rows_max:
            yield part
            part = []
        part.append(segment)
    if part:
        yield part


def _done(name: str, runs: Sequence[Run], rows: int) -> UnitDone:
    return UnitDone(name, tuple(id_ for run in runs for id_ in run.files), encode_runs(runs), rows)


def _compare(target: BuiltIndex, expected: EntrySum, found: EntrySum) -> None:
    if expected != found:
        raise errors.Bug(
            detail=f"index {target.index.name} of {target.table.name} was built with {found.entries} entries for "
            f"{expected.entries} rows, or with other values"
        )


def _built(target: BuiltIndex, runs: Sequence[Run]) -> Built:
    ordered = sorted((segment for run in runs for segment in run.segments), key=lambda segment: segment.key_min)
    return Built(target.index.id, tuple(GenerationMember(segment) for segment in ordered))
