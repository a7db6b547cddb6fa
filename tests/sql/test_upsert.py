"""ON CONFLICT: row by row, by one join and by DuckDB's own filter come to the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seachange
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.write import upsert

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=8)


def literal(rows):
    return ", ".join(str(row) for row in rows)


def filled(session, rows):
    session.execute("drop table if exists t")
    session.execute("create table t (id int primary key, n int)")
    if rows:
        session.execute(f"insert into t values {literal(rows.items())}")


def content(session):
    return dict(session.execute("select id, n from t").rows)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    node = open_node(tmp_path_factory.mktemp("upsert"))
    session = Session(node)
    yield session
    session.close()
    node.close()


# Enough rows for one join instead of many look-ups.
MANY = [(1000 + i, i) for i in range(upsert.LOOKUPS_MAX)]


@pytest.mark.parametrize("more", [[], MANY], ids=["few", "many"])
@settings(deadline=None, max_examples=25)
@given(present=ROWS.map(dict), proposed=ROWS.filter(bool))
def test_nothing_and_update_against_a_dict(session, more, present, proposed):
    proposed = [*proposed, *more]
    filled(session, present)
    count = session.execute(f"insert into t values {literal(proposed)} on conflict do nothing").count
    expected = {**dict(reversed(proposed)), **present}
    assert content(session) == expected
    assert count == len(expected) - len(present)
    filled(session, present)
    text = f"insert into t values {literal(proposed)} on conflict (id) do update set n = t.n + excluded.n"
    if len({key for key, _ in proposed}) < len(proposed):
        with pytest.raises(seachange.Error) as failure:
            session.execute(text)
        assert failure.value.sqlstate == "21000"
    else:
        assert session.execute(text).count == len(proposed)
        assert content(session) == {**present, **{k: n + present.get(k, 0) for k, n in proposed}}


def test_a_query_and_its_rows_come_to_the_same(session):
    session.execute("create table source (id int, n int)")
    session.execute("insert into source select i % 50, i from generate_series(1, 200) as g(i)")
    filled(session, {1: 1, 2: 2})
    assert session.execute("insert into t select * from source on conflict do nothing").count == 48
    assert content(session)[1] == 1
    assert len(content(session)) == 50


def test_a_concurrent_conflict_is_run_again(session):
    other = Session(session.node)
    filled(session, {})
    session.execute("insert into t values (1, 0)")
    for who in (session, other) * 3:
        who.execute("insert into t values (1, 1) on conflict (id) do update set n = t.n + excluded.n")
    assert content(session) == {1: 6}
    other.close()
