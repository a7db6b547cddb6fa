"""Rewritten rows: converted, generated and drawn values, another key, and errors that name the row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seachange import errors
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import ColumnId, IndexId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.pipeline.kernels.executor import Sizes
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.pipeline.kernels.source import seen_through
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.pipeline.worlds import Row, World, assert_generation, make_table

DOUBLE = SqlType(Kind.DOUBLE)
NEW = IndexId(300)
KEY = Column(ColumnId(1), "id", BIGINT, nullable=False)
WORD = Column(ColumnId(2), "w", TEXT)
SIZES = Sizes(unit_rows=10, range_rows=8)


def coming(id_: int, type_: SqlType, **values: Any) -> Column:
    return Column(ColumnId(id_), f"new{id_}", type_, state=State.WRITE_ONLY, **values)


def converted(text: str, type_: SqlType = BIGINT) -> Column:
    return coming(3, type_, conversion=Expression(text, (ColumnId(2),)))


def make_world(folder: Path, *added: Column, key: tuple[int, ...] = (1,), words: Any = str) -> tuple[World, list[Row]]:
    """Thirty rows, of which ten are stored in a layout that has the new columns already."""
    successor = Index(NEW, "t_pkey", tuple(map(ColumnId, key)), True, state=State.WRITE_ONLY)
    table = make_table(((KEY, WORD), (KEY, WORD, *added)), next_primary=successor)
    world = World(folder, table)
    rows: list[Row] = [{1: i, 2: words(100 - i)} for i in range(30)]
    world.add_file(rows[:10], 0, superseded=[{1: 50, 2: "gone"}])
    world.add_inline(rows[10:20], 0)
    world.add_file([{**row, **{c.id: None for c in added}} for row in rows[20:]], 1)
    return world, rows


def target(table: Table) -> BuiltIndex:
    assert table.next_primary is not None
    return BuiltIndex(seen_through(table, NEW), table.next_primary)


def rebuild(world: World, done: Any = (), report: Any = lambda _: None) -> Built:
    (built,) = world.backfill([target(world.table)], done, report, SIZES)
    return built


def test_values_are_converted(tmp_path: Path) -> None:
    world, rows = make_world(tmp_path, converted('CAST("c2" AS BIGINT) * 2'))
    wanted = [{**row, 3: int(row[2]) * 2} for row in rows]
    assert_generation(world, target(world.table), rebuild(world), wanted)


def test_rows_in_the_order_of_the_old_key_are_written_once(tmp_path: Path) -> None:
    world, _ = make_world(tmp_path, converted('CAST("c2" AS BIGINT)'))
    units: list[UnitDone] = []
    built = rebuild(world, report=units.append)
    assert sorted(s for unit in units for s in unit.files) == sorted(m.segment.id for m in built.members)


def test_another_primary_key(tmp_path: Path) -> None:
    world, rows = make_world(tmp_path, key=(2,), words=lambda n: f"w{n * 7 % 101:03}")
    built = rebuild(world)
    assert_generation(world, target(world.table), built, rows)
    assert [row[0] for row in world.entries(built)] == sorted(row[2] for row in rows)


def test_duplicate_key_is_refused(tmp_path: Path) -> None:
    world, _ = make_world(tmp_path, key=(2,), words=lambda n: str(n // 2))
    with pytest.raises(errors.UniqueViolation, match=r"\(w\)="):
        rebuild(world)


def test_generated_values_follow_those_that_come_with_them(tmp_path: Path) -> None:
    generated = coming(4, BIGINT, generated=Expression('"c3" + "c1"', (ColumnId(3), ColumnId(1))))
    world, rows = make_world(tmp_path, converted('CAST("c2" AS BIGINT)'), generated)
    wanted = [{**row, 3: int(row[2]), 4: int(row[2]) + row[1]} for row in rows]
    assert_generation(world, target(world.table), rebuild(world), wanted)


def test_a_volatile_default_is_drawn_once(tmp_path: Path) -> None:
    drawn = coming(3, DOUBLE, default="random()")
    twice = coming(4, DOUBLE, generated=Expression('"c3" * 2', (ColumnId(3),)))
    world, _ = make_world(tmp_path, drawn, twice)
    units: list[UnitDone] = []
    first = world.entries(rebuild(world, report=units.append))
    values = [row[2] for row in first]
    assert len(set(values)) == 30
    assert all(0 <= value < 1 for value in values)
    assert all(row[3] == row[2] * 2 for row in first)
    again = world.entries(rebuild(world, done=units))
    assert again == first
    one_lost = world.entries(rebuild(world, done=units[1:]))
    assert sum(a == b for a, b in zip(first, one_lost, strict=True)) == 30 - units[0].rows


def test_what_a_writer_has_drawn_already_is_kept(tmp_path: Path) -> None:
    world, _ = make_world(tmp_path, coming(3, DOUBLE, default="random()"))
    world.add_inline([{1: 77, 2: "7", 3: 5.0}], 1)
    assert (77, "7", 5.0) in world.entries(rebuild(world))


def test_stored_conversion_is_recomputed(tmp_path: Path) -> None:
    world, _ = make_world(tmp_path, converted('CAST("c2" AS BIGINT)'))
    world.add_inline([{1: 77, 2: "7", 3: 5}], 1)
    assert (77, "7", 7) in world.entries(rebuild(world))


@pytest.mark.parametrize(
    ("column", "word", "sqlstate"),
    [
        (converted('CAST("c2" AS BIGINT)'), "x", "22P02"),
        (converted('CAST(CAST("c2" AS BIGINT) * 1000 AS SMALLINT)', SqlType(Kind.SMALLINT)), "", "22003"),
        (converted("\"c2\" || 'yy'", SqlType(Kind.VARCHAR, length=4)), "", "22001"),
    ],
)
def test_a_value_that_cannot_be_converted_names_its_row(
    tmp_path: Path, column: Column, word: str, sqlstate: str
) -> None:
    words = (lambda n: word if n == 83 else str(n)) if word else (lambda n: str(n) if n == 100 else str(n % 30))
    world, _ = make_world(tmp_path, column, words=words)
    with pytest.raises(errors.DataError, match=r'column "new3" of the row with \(id\)=') as caught:
        rebuild(world)
    assert caught.value.sqlstate == sqlstate
    if word:
        assert "(id)=(17)" in str(caught.value)


def test_other_indexes_end_in_the_key_of_the_new_primary_one(tmp_path: Path) -> None:
    world, rows = make_world(tmp_path, key=(2,), words=lambda n: f"w{n:03}")
    built = rebuild(world)
    table = replace(seen_through(world.table, NEW), secondary=(Index(IndexId(301), "by_id", (ColumnId(1),)),))
    second = World(tmp_path, table)
    second.store = world.store
    for member in built.members:
        second.files.append(type(world.files[0])(member.segment, world.files[-1].superseded))
    goal = BuiltIndex(table, table.secondary[0])
    (made,) = second.backfill([goal], (), lambda _: None, SIZES)
    assert_generation(second, goal, made, rows)
    assert second.entries(made)[0] == (0, "w100")
