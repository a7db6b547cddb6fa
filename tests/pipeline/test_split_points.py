"""Ranges are as even as the values allow, the same every time, and in sort order."""

from pathlib import Path

import pytest

from seachange import errors
from seachange.model.change.work import UnitDone
from seachange.model.ids import ColumnId, IndexId
from seachange.model.schema.descriptor import Column, Index
from seachange.pipeline.kernels.executor import Sizes
from seachange.pipeline.kernels.runs import decode_runs
from seachange.pipeline.kernels.split_points import SplitPoints, choose_split_points, split_evenly
from seachange.values.types import BIGINT, TEXT
from tests.pipeline.worlds import World, assert_generation, make_table, virtual

KEY = Column(ColumnId(1), "id", BIGINT, nullable=False)
NUMBER = Column(ColumnId(2), "n", BIGINT)
WORD = Column(ColumnId(3), "w", TEXT)
PARSED = virtual(9, BIGINT, 'CAST("c3" AS BIGINT)', 3)
PLAIN = Index(IndexId(201), "plain", (ColumnId(2),))


@pytest.mark.parametrize(
    ("sample", "ranges", "values"),
    [
        ([], 3, ()),
        ([(None, 9)], 3, ()),
        ([(n, 1) for n in range(9)], 3, (3, 6)),
        ([(n, 1) for n in range(9)], 1, ()),
        # One value is in one range, and those after it are not cut the more for it.
        ([(0, 90), *((n, 1) for n in range(1, 11))], 4, (1,)),
        ([*((n, 1) for n in range(10)), (10, 90)], 4, (10,)),
        # What NULL takes of the last range is counted.
        ([(1, 5), (2, 5), (None, 10)], 4, (2,)),
    ],
)
def test_split_points_are_even(sample: list[tuple[int | None, int]], ranges: int, values: tuple[int, ...]):
    assert split_evenly(sample, ranges) == SplitPoints(values)


def make_world(folder: Path, index: Index) -> World:
    world = World(folder, make_table(((KEY, NUMBER, WORD),), (PARSED,), secondary=(index,)))
    rows = [{1: i, 2: i * 7 % 100 + 1, 3: f"w{i}"} for i in range(100)]
    for start in range(0, 100, 20):
        world.add_file(rows[start : start + 20])
    return world


def test_ranges_are_sorted_by_themselves(tmp_path: Path):
    world = make_world(tmp_path, PLAIN)
    (target,) = world.targets()
    cuts = choose_split_points(world.source, target, 4, world.kernel_context)
    assert cuts == choose_split_points(world.source, target, 4, world.kernel_context) == SplitPoints((26, 51, 76))
    units: list[UnitDone] = []
    (built,) = world.backfill([target], (), units.append, Sizes(unit_rows=40, range_rows=25))
    dealt = [run.shuffle_file for unit in units for run in decode_runs(unit.output) if run.shuffle_file is not None]
    assert [sum(counts) for counts in zip(*(file.counts for file in dealt), strict=True)] == [25, 25, 25, 25]
    assert [member.segment.rows for member in built.members] == [25, 25, 25, 25]
    rows = [{1: i, 2: i * 7 % 100 + 1, 3: f"w{i}"} for i in range(100)]
    assert_generation(world, target, built, rows)


def test_units_with_other_split_points_are_not_reused(tmp_path: Path):
    world = make_world(tmp_path, PLAIN)
    (target,) = world.targets()
    units: list[UnitDone] = []
    (first,) = world.backfill([target], (), units.append, Sizes(unit_rows=40, range_rows=25))
    again: list[UnitDone] = []
    (second,) = world.backfill([target], units, again.append, Sizes(unit_rows=40, range_rows=50))
    assert sum(unit.rows for unit in again) == 100
    assert world.entries(first) == world.entries(second)


def test_failing_expression_during_partitioning_is_a_user_error(tmp_path: Path):
    index = Index(IndexId(201), "parsed", (ColumnId(2), ColumnId(9)))
    world = World(tmp_path, make_table(((KEY, NUMBER, WORD),), (PARSED,), secondary=(index,)))
    world.add_file([{1: 1, 2: 1, 3: "1"}])
    world.add_file([{1: 2, 2: 2, 3: "two"}])
    with pytest.raises(errors.Error) as raised:
        world.backfill(world.targets(), (), lambda _: None, Sizes(unit_rows=1, range_rows=1))
    assert raised.value.sqlstate == "22P02"
