"""What a schema change is expected to write, by a sample of the rows, beside what it then writes."""

from contextlib import closing

import pytest

from seachange.engine.session.session import Session

ROWS = 12_000
# Numbers and texts of row i.
VALUES = {
    "random": ("(i::bigint * 7919 % 12007)::int", "md5(i::text)"),
    "sequential": ("i", "'b' || i"),
    "few distinct": ("i % 5", "'b' || i % 5"),
}
STATEMENTS = (
    "create index on t (a)",
    "create index on t (b desc, a)",
    "create index on t (lower(b)) where c < 3",
    "create index on t (c) include (b)",
    "alter table t add column n uuid unique default gen_random_uuid()",
    "alter table t add column m int unique",
    "alter table t alter a type text",
    "alter table t add column g text generated always as (b || b) stored",
    "alter table t alter primary key using columns (e)",
    "alter table bag add column id uuid primary key default gen_random_uuid()",
)
TAKEN = (
    "select estimated_rows, rows, estimated_bytes, bytes, statement from seachange.changes where id > {} order by id"
)


@pytest.fixture(params=VALUES)
def session(node, request):
    number, text = VALUES[request.param]
    with closing(Session(node)) as session:
        session.execute("create table t (id int primary key, a int, b text, c int, e bigint not null unique)")
        session.execute(f"insert into t select i, {number}, {text}, i % 10, i from generate_series(1, {ROWS}) g (i)")
        session.execute("create table bag (x int, y text)")
        session.execute(f"insert into bag select {number}, {text} from generate_series(1, {ROWS}) g (i)")
        yield session


def newest(session):
    return session.execute("select coalesce(max(id), 0) from seachange.changes").rows[0][0]


def test_estimates_are_within_twice_of_what_is_written(session):
    before = newest(session)
    for statement in STATEMENTS:
        session.execute(statement)
    taken = session.execute(TAKEN.format(before)).rows
    assert len(taken) == len(STATEMENTS)
    for expected_rows, rows, expected_bytes, written, statement in taken:
        assert rows <= expected_rows * 2 <= rows * 4, statement
        assert 0 < written <= expected_bytes * 2 <= written * 4, statement


def test_estimate_of_a_statement_draws_nothing_from_a_sequence(node):
    with closing(Session(node)) as session:
        session.execute("create table t (id int primary key)")
        session.execute(f"insert into t select i from generate_series(1, {ROWS}) g (i)")
        session.execute("explain (ddl, cost) alter table t add column n serial")
        session.execute("alter table t add column n serial")
        assert session.execute("select min(n), max(n) from t").rows == [(1, ROWS)]


def test_rows_that_cannot_be_converted_are_no_error_of_the_estimate(node):
    with closing(Session(node)) as session:
        session.execute("create table t (id int primary key, a text)")
        session.execute(f"insert into t select i, 'x' from generate_series(1, {ROWS}) g (i)")
        lines = [
            line for (line,) in session.execute("explain (ddl, cost) alter table t alter a type int using a::int").rows
        ]
        assert lines[0].startswith("Strategy: rebuild primary index")
