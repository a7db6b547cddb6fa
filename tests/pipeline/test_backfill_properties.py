"""A backfill gives the entries of an oracle, for any rows in any place."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.model.change.work import UnitDone
from seachange.model.ids import ColumnId, IndexId, SegmentId
from seachange.model.schema.descriptor import Column, Index
from seachange.model.schema.expression import Expression
from seachange.pipeline.kernels.backfill import backfill
from seachange.pipeline.kernels.executor import LocalExecutor, Sizes
from seachange.storage.shuffle_file import shuffle_name
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.pipeline.worlds import Row, World, assert_generation, make_table, virtual
from tests.storage.samples import TYPES, VALUES
from tests.support.examples import examples

INTEGER = SqlType(Kind.INTEGER)
KEY = Column(ColumnId(1), "id", BIGINT, nullable=False)
NUMBER = Column(ColumnId(2), "n", BIGINT)
NARROW = Column(ColumnId(2), "n", INTEGER)
WORD = Column(ColumnId(3), "w", TEXT)
ADDED = Column(ColumnId(5), "added", INTEGER, frozen="7")
SIZES = Sizes(unit_rows=12, range_rows=10)


def indexes(other: Column) -> tuple[Index, ...]:
    """Every form of index, `other` being of any type."""
    n, w, any_ = ColumnId(2), ColumnId(3), other.id
    return (
        Index(IndexId(201), "plain", (n,)),
        Index(IndexId(202), "any", (any_,), include=(w,)),
        Index(IndexId(203), "composite", (any_, n), descending=(any_,)),
        Index(IndexId(204), "partial", (w,), where=Expression('"c2" > 3', (n,))),
        Index(IndexId(205), "expression", (ColumnId(9),), include=(any_, ColumnId(5))),
        Index(IndexId(206), "both", (ColumnId(10), ColumnId(5)), where=Expression('"c3" IS NOT NULL', (w,))),
    )


def has_entry(index: Index, row: Row) -> bool:
    match index.name:
        case "partial":
            return row[2] is not None and row[2] > 3
        case "both":
            return row[3] is not None
        case _:
            return True


def with_virtual(row: Row) -> Row:
    derived = {9: None if row[2] is None else row[2] * 2, 10: None if row[3] is None else len(row[3])}
    return {5: 7, **row, **derived}


@st.composite
def worlds(draw: Any) -> tuple[Column, list[tuple[str, list[Row], list[Row]]]]:
    """A type, and rows in parts: the place of each, its live rows and the superseded ones."""
    type_ = draw(st.sampled_from(TYPES))
    other = Column(ColumnId(4), "any", type_)
    value = st.none() | VALUES[type_]
    count = draw(st.integers(0, 60))
    keys = iter(draw(st.permutations(range(count))))
    parts = []
    left = count
    while left:
        size = draw(st.integers(1, left))
        left -= size
        rows = [
            {
                1: next(keys),
                2: draw(st.none() | st.integers(-5, 10)),
                3: draw(st.none() | st.text("abz", max_size=3)),
                4: draw(value),
            }
            for _ in range(size)
        ]
        place = draw(st.sampled_from(["old file", "new file", "old inline", "new inline"]))
        gone = draw(st.integers(0, size - 1)) if place.endswith("file") else 0
        if place.startswith("new"):
            rows = [{**row, 5: draw(st.none() | st.integers(0, 3))} for row in rows]
        parts.append((place, rows[gone:], rows[:gone]))
    return other, parts


def build_world(folder: Any, other: Column, parts: Any) -> tuple[World, list[Row]]:
    old, new = (KEY, NARROW, WORD, other), (KEY, NUMBER, WORD, other, ADDED)
    derived = (virtual(9, BIGINT, '"c2" * 2', 2), virtual(10, BIGINT, 'length("c3")', 3))
    world = World(folder, make_table((old, new), derived, secondary=indexes(other)))
    live: list[Row] = []
    for place, rows, superseded in parts:
        layout = 0 if place.startswith("old") else 1
        if place.endswith("file"):
            world.add_file(rows, layout, superseded)
        else:
            world.add_inline(rows, layout)
        live += map(with_virtual, rows)
    return world, live


@given(worlds())
@settings(
    max_examples=examples(12),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_generations_are_those_of_the_oracle(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    world, rows = build_world(tmp_path_factory.mktemp("w"), *drawn)
    targets = world.targets()
    reported: list[UnitDone] = []
    built = world.backfill(targets, (), reported.append, SIZES)
    assert [b.index_id for b in built] == [t.index.id for t in targets]
    for target, generation in zip(targets, built, strict=True):
        assert_generation(world, target, generation, [row for row in rows if has_entry(target.index, row)])
    merges = any(unit.unit.startswith("sorted-") for unit in reported)
    assert sum(unit.rows for unit in reported) == len(rows) or (not merges and len(reported) > 1)


def two_files(folder: Any) -> tuple[World, list[Row]]:
    """Rows whose words and numbers are spread over the files, so that runs have to be merged."""
    other = Column(ColumnId(4), "any", TEXT)
    rows = [{1: i, 2: i % 11, 3: f"w{i * 7 % 30:02}", 4: str(i * 5 % 17), 5: i} for i in range(30)]
    return build_world(
        folder, other, [("new file", rows[:12], []), ("new file", rows[12:24], []), ("new inline", rows[24:], [])]
    )


def test_any_subset_of_units_may_be_kept(tmp_path: Any) -> None:
    world, rows = two_files(tmp_path)
    targets = world.targets()[:2]
    units: list[UnitDone] = []
    first = world.backfill(targets, (), units.append, SIZES)
    merging = [unit for unit in units if unit.unit.startswith("sorted-")]
    reading = [unit for unit in units if unit not in merging]
    # A row counts half when it is read.
    assert sum(unit.rows for unit in reading) == sum(unit.rows for unit in merging) == len(rows) / 2
    assert len(reading) == 3
    assert len(merging) > 4
    subsets = [set(), *({u.unit for u in c} for k in (1, 2, 3) for c in combinations(reading, k))]
    subsets += [{u.unit for u in reading} | {u.unit for u in merging[:k]} for k in range(1, len(merging) + 1)]
    for kept in subsets:
        again: list[UnitDone] = []
        done = [unit for unit in units if unit.unit in kept]
        built = world.backfill(targets, done, again.append, SIZES)
        assert kept.isdisjoint(unit.unit for unit in again)
        for target, generation in zip(targets, built, strict=True):
            assert_generation(world, target, generation, rows)
        if len(kept) == len(units):
            assert built == first
            assert not again


def test_a_unit_whose_file_is_damaged_is_done_again(tmp_path: Any) -> None:
    world, rows = two_files(tmp_path)
    targets = world.targets()[:1]
    units: list[UnitDone] = []
    world.backfill(targets, (), units.append, SIZES)
    lost, cut = units[0], units[1]
    world.store.warehouse.delete([lost.files[0]])
    path = world.store.files.path(shuffle_name(cut.files[0]))
    with open(path, "r+b") as file:
        file.seek(10)
        file.write(b"x")
    world.store.warehouse.forget(cut.files[0])
    again: list[UnitDone] = []
    (built,) = world.backfill(targets, units, again.append, SIZES)
    assert {lost.unit, cut.unit} <= {unit.unit for unit in again}
    assert_generation(world, targets[0], built, rows)


def test_units_of_other_rows_are_not_taken(tmp_path: Any) -> None:
    """After a compaction at the very sequence, other files have the same rows: they are read again."""
    world, rows = two_files(tmp_path)
    targets = world.targets()[:1]
    units: list[UnitDone] = []
    world.backfill(targets, (), units.append, SIZES)
    world.files.clear()
    world.inline.clear()
    world.add_file(rows)
    (built,) = world.backfill(targets, units, lambda _: None, SIZES)
    assert_generation(world, targets[0], built, rows)


def test_unit_is_interrupted_before_its_next_file(tmp_path: Any) -> None:
    world, _ = two_files(tmp_path)
    reserved: list[SegmentId] = []

    def reserve(count: int) -> list[SegmentId]:
        reserved.extend(world.store.reserve(count))
        world.interrupts.set()
        return reserved[-count:]

    units: list[UnitDone] = []
    executor = LocalExecutor(replace(world.kernel_context, reserve=reserve), SIZES)
    with pytest.raises(errors.QueryCanceled):
        backfill(world.source, world.targets(), executor, world.store.warehouse, (), units.append)
    assert len(reserved) == 1
    assert not units
