"""Duplicates of an index, wherever its entries lie, are those that an oracle counts."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId, GenerationId, IndexId
from seachange.model.schema.descriptor import Column, Index
from seachange.pipeline.kernels.duplicates import find_duplicates, split_chain
from seachange.pipeline.kernels.executor import Sizes
from seachange.pipeline.kernels.source import IndexSource
from seachange.storage.image import SnapshotParts
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.pipeline.worlds import World, make_table

DOUBLE = SqlType(Kind.DOUBLE)
KEY = Column(ColumnId(1), "id", BIGINT, nullable=False)
COLUMNS = (KEY, Column(ColumnId(2), "a", DOUBLE), Column(ColumnId(3), "b", TEXT))
UNIQUE = IndexId(200)
NAN = float("nan")
ENTRIES = st.tuples(st.sampled_from([None, 0.0, 1.0, NAN]), st.sampled_from([None, "", "x", "y"]))


def index_world(folder: Any, parts: Any, nulls_distinct: bool) -> tuple[World, IndexSource]:
    """Entries (a, b, id) of a unique index on (a, b): parts of it in files, with superseded ones, or inline."""
    unique = Index(UNIQUE, "u", (ColumnId(2), ColumnId(3)), True, nulls_distinct=nulls_distinct)
    table = make_table((COLUMNS,), primary=Index(UNIQUE, "u", (ColumnId(2), ColumnId(3), ColumnId(1)), True))
    world = World(folder, table)
    number = iter(range(10_000))
    for in_file, live, gone in parts:
        rows = [{1: next(number), 2: a, 3: b} for a, b in live]
        if in_file and live:
            world.add_file(rows, superseded=[{1: next(number), 2: a, 3: b} for a, b in gone])
        elif live:
            world.add_inline(rows)
    seen = make_table((COLUMNS,), secondary=(unique,))
    parts_ = SnapshotParts(tuple(world.files), tuple(world.inline))
    return world, IndexSource(seen, unique, GenerationId(5), parts_)


def expected(parts: Any, nulls_distinct: bool) -> int:
    keys = [("nan", b) if a is not None and a != a else (a, b) for _, live, _ in parts for a, b in live]
    if nulls_distinct:
        keys = [key for key in keys if None not in key]
    return sum(count - 1 for count in Counter(keys).values())


# So that neighbours are compared in several tasks.
SIZES = Sizes(unit_rows=3)


@given(
    st.lists(st.tuples(st.booleans(), st.lists(ENTRIES, max_size=6), st.lists(ENTRIES, max_size=3)), max_size=4),
    st.booleans(),
)
@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_duplicates_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, parts: Any, nulls_distinct: bool
) -> None:
    world, source = index_world(tmp_path_factory.mktemp("w"), parts, nulls_distinct)
    told: list[int] = []
    found = find_duplicates(source, world.executor(SIZES), told.append)
    assert sum(told) == source.rows
    wanted = expected(parts, nulls_distinct)
    assert (found[0] if found is not None else 0) == wanted


def test_files_in_order_are_not_sorted_again(tmp_path: Any) -> None:
    parts: Any = [(True, [(float(n), "x")], []) for n in (3, 1, 2)] + [(True, [(0.5, "x"), (2.5, "x")], [])]
    _, source = index_world(tmp_path, parts, True)
    chain, rest = split_chain(source)
    assert len(chain) >= 2
    assert all(a.segment.key_max < b.segment.key_min for a, b in pairwise(chain))
    assert len(chain) + len(rest.files) == 4


def test_the_last_key_of_a_file_is_compared_with_the_first_of_the_next(tmp_path: Any) -> None:
    parts: Any = [(True, [(1.0, "x")], []), (True, [(1.0, "x"), (2.0, "x")], []), (True, [(2.0, "x")], [])]
    world, source = index_world(tmp_path, parts, True)
    chain, rest = split_chain(source)
    assert (len(chain), len(rest.files)) == (3, 0)
    for unit_rows in (1, 3, 100):
        executor = world.executor(Sizes(unit_rows=unit_rows))
        assert find_duplicates(source, executor, lambda _: None) == (2, (1.0, "x"))
