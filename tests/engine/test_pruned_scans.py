"""A scan of keys in some ranges opens the files that may have some of them, and finds what a scan of all files does."""

from collections.abc import Iterator
from contextlib import closing
from itertools import combinations, combinations_with_replacement
from random import Random

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.storage.keys import EntryRanges

FILES = 8
ROWS = 100
KEYS = FILES * ROWS
# Keys at the ends of files and between them, and keys of no file.
BOUNDS = (-5, 0, 1, 41, 99, 100, 101, 250, 399, 400, 401, 777, KEYS, KEYS + 1, KEYS + 70)
FORMS = (
    "k >= {0} and k < {1}",
    "k > {0} and k <= {1}",
    "k between {0} and {1} and s > 'm'",
    "k in ({0}, {1}, {2}) and s >= 'k'",
    "k = {0} or k = {1}",
    "k < {0}",
    "k <= {0}",
    "k > {1}",
    "k >= {1}",
    "k = {0} and s like 'k%'",
    "w >= {0} and w <= {1}",
)


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    """Files that meet or overlap, rows that newer ones have replaced or deleted, in files and beside them."""
    node.parts.inline_rows_max = ROWS // 4
    with closing(Session(node)) as session:
        session.execute("create table t (k int, s text, v int, w int, primary key (k, s))")
        session.execute("create index t_w on t (w) include (v)")
        for n in range(FILES):
            rows = f"generate_series({n * ROWS}, {(n + 1) * ROWS + (1 if n % 2 else -1)}) g"
            session.execute(f"insert into t select g, 'k{n}', g, g from {rows}")
        session.execute(f"update t set v = v + 1 where k % {ROWS} < 30")
        session.execute(f"delete from t where k % {ROWS} between 10 and 50")
        session.execute(f"update t set v = v + 1, w = -w where k = {ROWS + 3}")
        session.execute(f"insert into t values ({ROWS}, 'z', 0, 1), ({KEYS + 50}, 'z', 0, 2)")
        yield session


def test_what_is_found(session: Session, node: Node):
    random = Random(5)
    for _ in range(150):
        low, high, other = sorted(random.choices(BOUNDS, k=3))
        query = "select k, s, v, w from t where " + random.choice(FORMS).format(low, high, other)
        node.parts.seeks = True
        found = session.execute(query).rows
        node.parts.seeks = False
        assert sorted(found) == sorted(session.execute(query).rows), query


@pytest.mark.parametrize(
    ("condition", "access"),
    [
        ("k >= 200 and k < 300 and v > 0", "scan of 3 of 9 files"),
        ("k > 201 and k < 300 and v > 0", "scan of 2 of 9 files"),
        ("k > 0 and v > 0", "full scan"),
        ("k >= 100 and k < 200 or k > 10000", "full scan"),
        ("w >= 300 and w < 340", "index scan of 2 of 9 files"),
    ],
)
def test_files_that_cannot_have_the_keys_are_not_opened(session: Session, condition: str, access: str):
    plan = [row[0] for row in session.execute(f"explain select sum(v) from t where {condition}").rows]
    assert [line for line in plan if line.startswith(f"Access to t: {access}")], plan


def test_ranges_meet_a_file_that_may_have_a_key_in_one_of_them():
    keys = [bytes([n]) for n in range(7)]
    pairs = list(combinations(keys, 2))
    disjoint = [(a, b) for a, b in combinations(pairs, 2) if a[1] <= b[0]]
    for ranges in [(), *((pair,) for pair in pairs), *disjoint]:
        met = EntryRanges(reversed(ranges))
        for low, high in combinations_with_replacement(keys, 2):
            assert met.meet(low, high) == any(a <= high and low < b for a, b in ranges), (ranges, low, high)
