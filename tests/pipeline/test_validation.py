"""Rows that violate a constraint, counted against an oracle, in any place."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId, IndexId
from seachange.model.schema.descriptor import Column, Index
from seachange.pipeline.kernels.executor import LocalExecutor
from seachange.pipeline.kernels.validation import broken_rows, files_without_nulls, missing_parents
from seachange.values.types import BIGINT, Kind, SqlType
from tests.pipeline.worlds import Row, World, make_table

INTEGER = SqlType(Kind.INTEGER)
KEY = Column(ColumnId(1), "id", BIGINT, nullable=False)
A, B = Column(ColumnId(2), "a", INTEGER), Column(ColumnId(3), "b", INTEGER)
# Rows that were written before it read it as 4.
LATE = Column(ColumnId(4), "late", INTEGER, frozen="4")

VALUE = st.none() | st.integers(0, 4)
PARTS = st.lists(
    st.tuples(
        st.sampled_from(["old file", "new file", "old inline", "new inline"]),
        st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=8),
        st.lists(st.tuples(VALUE, VALUE, VALUE), max_size=3),
    ),
    max_size=4,
)
QUICKLY = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def make_world(folder: Path, parts: Any, beside: World | None = None) -> tuple[World, list[Row]]:
    world = World(folder, make_table(((KEY, A, B), (KEY, A, B, LATE))))
    if beside is not None:
        world.store = beside.store
    numbers = iter(range(10_000))
    live: list[Row] = []
    for place, rows, gone in parts:
        layout = 0 if place.startswith("old") else 1
        made = [{1: next(numbers), 2: a, 3: b, 4: c if layout else 4} for a, b, c in rows]
        if place.endswith("file"):
            superseded = [{1: next(numbers), 2: a, 3: b, 4: c} for a, b, c in gone]
            world.add_file(made, layout, superseded)
        else:
            world.add_inline(made, layout)
        live += made
    return world, live


@given(PARTS)
@QUICKLY
def test_checks_count_what_the_oracle_counts(tmp_path_factory: pytest.TempPathFactory, parts: Any) -> None:
    world, rows = make_world(tmp_path_factory.mktemp("w"), parts)
    told: list[int] = []
    condition = '("c2" < "c4") IS FALSE'
    found = broken_rows(world.source, (ColumnId(2), ColumnId(4)), condition, world.executor(), told.append)
    wanted = [row[1] for row in rows if row[2] is not None and row[4] is not None and not row[2] < row[4]]
    assert (found.rows if found is not None else 0) == len(wanted)
    assert found is None or {key for (key,) in found.keys} <= set(wanted)
    assert found is None or len(found.keys) == min(5, len(wanted))
    assert sum(told) == len(rows)


@given(PARTS)
@QUICKLY
def test_files_are_skipped_only_if_no_live_row_has_null(tmp_path_factory: pytest.TempPathFactory, parts: Any) -> None:
    world, _ = make_world(tmp_path_factory.mktemp("w"), parts)
    for column in (A, LATE):
        skipped = files_without_nulls(world.source, column, world.store.warehouse)
        files = [(place, rows, gone) for place, rows, gone in parts if place.endswith("file")]
        for file, (place, rows, gone) in zip(world.files, files, strict=True):
            position = 0 if column is A else 2
            old = place.startswith("old")
            has_null = any(row[position] is None for row in (*rows, *gone)) and not (old and column is LATE)
            assert (file in skipped) == (not has_null)


@given(PARTS, PARTS, st.integers(1, 3))
@QUICKLY
def test_children_without_parents_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, children: Any, parents: Any, parallelism: int
) -> None:
    folder = tmp_path_factory.mktemp("w")
    told: list[int] = []
    world, rows = make_world(folder, children)
    other, keys = make_world(folder, parents, beside=world)
    index = Index(IndexId(100), "p", (ColumnId(2), ColumnId(3)), True)
    # The index of a key is the table's rows here: what is read of it are its columns, by id.
    parent = replace(other.source, index=index, table=replace(other.table, primary=index))
    executor = LocalExecutor(world.kernel_context, parallelism=parallelism)
    found = missing_parents(world.source, [A, B], parent, [A, B], executor, told.append)
    assert sum(told) == len(rows)
    present = {(row[2], row[3]) for row in keys}
    wanted = [(r[2], r[3]) for r in rows if None not in (r[2], r[3]) and (r[2], r[3]) not in present]
    assert (found.rows if found is not None else 0) == len(wanted)
    assert found is None or set(found.keys) <= set(wanted)
