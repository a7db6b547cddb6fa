"""Rows of many layouts are read together: each value as its layout has it, by as few parts as one layout takes."""

from contextlib import closing

import pytest

from seachange.engine.session.session import Session

# Written to files of their own, not to the catalog.
MANY = 12_000


@pytest.fixture
def session(node):
    with closing(Session(node)) as session:
        yield session


def rows(session, text):
    return list(session.execute(text).rows)


@pytest.mark.parametrize("count", [20, MANY], ids=["in the catalog", "in files"])
def test_values_of_all_layouts(session, count):
    session.execute("create table t (id bigint primary key, n int)")
    for number in range(4):
        columns, values = ("", "") if number == 0 else (f", c{number - 1}", ", nullif(i % 2, 0)")
        text = f"insert into t (id, n{columns}) select {number * MANY} + i, i{values}"
        session.execute(f"{text} from generate_series(1, {count}) g(i)")
        session.execute(f"alter table t add column c{number} int {'' if number == 1 else f'default {number + 10}'}")
    half = count // 2
    found = rows(session, "select sum(c0), count(c0), sum(c1), count(c1), sum(c2), count(c2), sum(c3) from t")
    assert found == [
        (
            # Before the column came, its rows with a value, and rows that do not name it.
            10 * count + half + 10 * 2 * count,
            count + half + 2 * count,
            half,
            half,
            12 * 3 * count + half,
            3 * count + half,
            13 * 4 * count,
        )
    ]
    assert rows(session, f"select c0, c1, c2, c3 from t where id = {MANY + 2}") == [(None, None, 12, 13)]
    assert rows(session, "select count(*) from t where c0 = 10") == [(3 * count,)]
    assert rows(session, "select count(*) from t where c2 is null") == [(half,)]


@pytest.mark.parametrize("whole", [False, True], ids=["few", "all"])
def test_superseded_rows_of_many_layouts(session, whole):
    session.execute("create table t (id bigint primary key, n int)")
    for number in range(3):
        session.execute(f"insert into t (id, n) select {number * MANY} + i, i from generate_series(1, {MANY}) g(i)")
        session.execute(f"alter table t add column c{number} int default {number}")
    session.execute("update t set n = 0, c1 = null where id % 1000 = 0")
    session.execute("delete from t where id % 1000 = 1")
    text = "select count(*), sum(c0), sum(c1), count(c1), sum(c2), sum(n) filter (where n = 0) from t"
    if not whole:
        text += " where id > 0"
    kept, updated = 3 * MANY - 36, 36
    assert rows(session, text) == [(kept, 0, kept - updated, kept - updated, 2 * kept, 0)]


def test_columns_that_were_widened_or_renamed_or_came_again(session):
    session.execute("create table t (id bigint primary key, a int, b varchar(5))")
    for number, change in enumerate(
        (
            "alter column a type bigint",
            "rename column b to c",
            "alter column c type text",
            "drop column a",
            "add column a text default 'new'",
        )
    ):
        text = "(id) values" if number == 4 else f"(id, a, {'b' if number < 2 else 'c'}) values"
        value = f"({number})" if number == 4 else f"({number}, {number}, 'v{number}')"
        session.execute(f"insert into t {text} {value}")
        session.execute(f"alter table t {change}")
    assert rows(session, "select id, a, c from t order by id") == [
        (0, "new", "v0"),
        (1, "new", "v1"),
        (2, "new", "v2"),
        (3, "new", "v3"),
        (4, "new", None),
    ]


@pytest.mark.parametrize("count", [3, MANY], ids=["in the catalog", "in files"])
def test_scan_has_as_many_parts_for_many_layouts_as_for_one(session, count):
    def parts():
        scan = session.in_transaction(lambda t: t.reads.scan(t.schema.table(None, "t")))
        return scan.sql.count("SELECT")

    session.execute("create table t (id bigint primary key)")
    session.execute(f"insert into t select i from generate_series(1, {count}) g(i)")
    one = parts()
    for number in range(5):
        session.execute(f"alter table t add column c{number} text default 'd{number}'")
        text = f"insert into t (id) select {(number + 1) * MANY} + i from generate_series(1, {count}) g(i)"
        session.execute(text)
    assert parts() == one


def test_recent_rows_of_an_earlier_layout_beside_files(session):
    """Rows of one layout in the catalog are read as they are only if they have every column."""
    session.execute("create table t (id bigint primary key, n int)")
    session.execute("insert into t select i, 1 from generate_series(1, 20) g(i)")
    session.execute("alter table t add column c int default 5")
    session.execute(f"insert into t select {MANY} + i, 2, 6 from generate_series(1, {MANY}) g(i)")
    assert rows(session, "select n, c, count(*) from t group by 1, 2 order by 1") == [(1, 5, 20), (2, 6, MANY)]
