"""Compaction and migration by an executor, without Spark: the new generation has the same rows in every layout."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from seachange import errors
from seachange.model.change.vacuum import Rewritten
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import ColumnId, GenerationId, Seq
from seachange.model.schema.descriptor import Column
from seachange.model.segments import Generation
from seachange.pipeline.compaction.deltas import kept_members
from seachange.pipeline.compaction.gc import UNIT_FILES, delete_by
from seachange.pipeline.compaction.generations import CompactUnit, choose_compaction, compaction_units, rewrite
from seachange.pipeline.kernels.backfill import Report
from seachange.pipeline.kernels.executor import Sizes
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.values.types import TEXT
from tests.pipeline.test_backfill_properties import SIZES, build_world, worlds
from tests.pipeline.worlds import Row, World, assert_generation, expected_entries
from tests.storage.samples import same

MIGRATED = {"new file", "new inline"}


def generation_of(world: World) -> Generation:
    members = tuple(kept_members(world.files))
    return Generation(world.source.generation_id, world.table.primary.id, Seq(1), Seq(1), members)


def fold_of(world: World, full: bool = True) -> CompactUnit | None:
    return choose_compaction(world.source, generation_of(world), full)


def folded(world: World, done: list[UnitDone], report: Report, sizes: Sizes = SIZES) -> Rewritten:
    compact_deltas = fold_of(world)
    assert compact_deltas is not None
    return rewrite(compact_deltas, world.executor(sizes), world.store.warehouse, done, report)


def all_rows(world: World, made: Rewritten) -> list[tuple[Any, ...]]:
    """The rows of the members, by key, in the columns of the newest layout."""
    shown: list[tuple[Any, ...]] = []
    for member in made.members:
        gone = set(memoryview(member.deleted).cast("I")) if member.deleted else set()
        assert member.segment.layout_id == world.table.layout.id
        shown += [row for at, row in enumerate(world.read(member.segment)) if at not in gone]
    return sorted(shown, key=lambda row: row[0])


@given(worlds())
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_rows_are_the_same_and_all_of_the_newest_layout(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    world, rows = build_world(tmp_path_factory.mktemp("w"), *drawn)
    compact_deltas = fold_of(world)
    if compact_deltas is None:
        assert all(place in MIGRATED and not gone for place, _, gone in drawn[1])
        return
    units = compaction_units(compact_deltas.source, SIZES)
    assert sum(unit.rows for unit in units) == compact_deltas.source.rows
    reported: list[UnitDone] = []
    made = rewrite(compact_deltas, world.executor(SIZES), world.store.warehouse, (), reported.append)
    shown, wanted = all_rows(world, made), expected_entries(compact_deltas.target, rows)
    assert len(shown) == len(wanted)
    assert all(all(map(same, *pair)) for pair in zip(shown, wanted, strict=True))
    assert sum(unit.rows for unit in reported) == compact_deltas.source.rows
    # A later attempt has nothing left to do.
    again: list[UnitDone] = []
    assert rewrite(compact_deltas, world.executor(SIZES), world.store.warehouse, reported, again.append) == made
    assert not again


def scattered(folder: Any) -> tuple[World, list[Row]]:
    other = Column(ColumnId(4), "any", TEXT)
    rows = [{1: i, 2: i, 3: "w", 4: "x", 5: i} for i in range(60)]
    parts: list[Any] = [("new file", rows[:20], []), ("new file", rows[20:40], []), ("new inline", rows[40:], [])]
    return build_world(folder, other, parts)


def test_rows_of_the_catalog_are_written_with_the_files_among_whose_keys_they_are(tmp_path: Any) -> None:
    """In a unit of their own they would overlap all others, and all would be merged again."""
    other = Column(ColumnId(4), "any", TEXT)
    rows = [{1: i, 2: i, 3: "w", 4: "x", 5: i} for i in range(48)]
    spread, filed = rows[::4], [row for i, row in enumerate(rows) if i % 4]
    world, live = build_world(tmp_path, other, [("old file", filed[:18], []), ("old file", filed[18:], [])])
    world.add_inline(spread)
    sizes = Sizes(unit_rows=18, range_rows=18)
    units = compaction_units(world.source, sizes)
    assert [unit.rows for unit in units] == [25, 23]
    reported: list[UnitDone] = []
    made = folded(world, [], reported.append, sizes)
    assert [unit.unit.startswith("fold-") for unit in reported] == [True, True]
    filled = [{**row, 5: 7} for row in live] + spread
    built = Built(made.index_id, made.members)
    assert_generation(world, BuiltIndex(world.table, world.table.primary), built, filled)


def test_no_compaction_if_nothing_to_do_or_overtaken(tmp_path: Any) -> None:
    other = Column(ColumnId(4), "any", TEXT)
    rows = [{1: i, 2: i, 3: "w", 4: "x", 5: i} for i in range(10)]
    world, _ = build_world(tmp_path, other, [("new file", rows, [])])
    assert fold_of(world) is None
    world.add_inline([{**rows[0], 1: 99}])
    assert fold_of(world) is not None
    assert choose_compaction(world.source, replace(generation_of(world), id=GenerationId(99)), True) is None
    assert choose_compaction(world.source, None, True) is None


def test_incomplete_unit_is_detected(tmp_path: Any) -> None:
    world, _ = scattered(tmp_path)
    units: list[UnitDone] = []
    folded(world, [], units.append)
    lying = [replace(units[0], output="[]"), *units[1:]]
    with pytest.raises(errors.Bug, match="were written for"):
        folded(world, lying, lambda _: None)


def test_files_are_deleted_in_units_and_forgotten_when_they_are(tmp_path: Any) -> None:
    world, _ = scattered(tmp_path)
    present = [file.segment.id for file in world.files]
    # Missing files were deleted before a crash.
    ids = [*present, *range(10_000, 10_000 + UNIT_FILES)]
    forgotten: list[Any] = []
    delete_by(world.executor(), ids, forgotten.append, world.store.warehouse)
    assert [len(part) for part in forgotten] == [UNIT_FILES, 2]
    assert [id_ for part in forgotten for id_ in part] == ids
    assert world.store.files.names() == []
