"""What would make much out of little is refused at once, and everything else works as before."""

import resource
import time

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    node = open_node(tmp_path_factory.mktemp("amplify"))
    session = Session(node)
    session.execute("create table t (id int primary key, s text, n bigint)")
    session.execute("insert into t values (1, 'x', 4000000000), (2, 'ab', 3)")
    yield session
    session.close()
    node.close()


@pytest.mark.parametrize(
    "text",
    [
        "select repeat('x', 4000000000)",
        "select repeat(s, n) from t",
        "select length(repeat(repeat(repeat('x', 1000), 1000), 1000))",
        "with a as (select repeat('x', 10000000) as s) select length(repeat(s, 100)) from a",
        "select lpad('x', 2000000000, 'ab')",
        "select rpad('x', 2000000000)",
        "select length(space(4000000000))",
        "select length(replace(repeat('x', 1000000), 'x', repeat('y', 1000)))",
        "select length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000), 'g'))",
        "select count(*) from (select generate_series(1, 4000000000)) as q",
        "select count(*) from (select generate_series(1, n) from t) as q",
        "select count(*) from t, lateral generate_series(1, t.n)",
        "select generate_series(timestamp '0001-01-01', timestamp '9999-01-01', interval '1 microsecond')",
        "insert into t values (3, repeat('x', 4000000000), 1)",
        "update t set s = repeat('x', n) where id = 1",
        "update t set n = 1 where id = 1 returning repeat('x', 4000000000)",
    ],
)
def test_refused_at_once(session, text):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with pytest.raises(errors.Error) as failure:
        session.execute(text)
    assert failure.value.sqlstate == "54000"
    assert time.process_time() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10


def test_nesting_is_bounded(session):
    with pytest.raises(errors.StatementTooComplex):
        session.execute("select repeat(repeat(repeat(repeat(repeat('a', 2), 2), 2), 2), 2)")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select repeat('ab', 3), repeat('x', 0), repeat('x', -1)", [("ababab", "", "")]),
        ("select repeat('x', null), repeat(null, 3)", [(None, None)]),
        ("select lpad('x', 5, 'ab'), rpad('x', 3), lpad('abc', 2), lpad(null, 3)", [("ababx", "x  ", "ab", None)]),
        ("select replace('aXbX', 'X', '--'), replace(null, 'a', 'b'), replace('a', '', 'b')", [("a--b--", None, "a")]),
        ("select regexp_replace('abcb', 'b', 'xx', 'g')", [("axxcxx",)]),
        ("select repeat(s, id) from t where id = 2", [("abab",)]),
        ("select format('%s-%s {} 100%%', 1, null)", [("1- {} 100%",)]),
        ("select format('{:>4000000000} %s', s) from t where id = 1", [("{:>4000000000} x",)]),
        ("select generate_series(1, 3)", [(1,), (2,), (3,)]),
        ("select generate_series(3, 1, -2)", [(3,), (1,)]),
        ("select count(*) from generate_series(1, 10000000)", [(10_000_000,)]),
        ("select sum(i) from t, lateral generate_series(1, t.id) as g(i)", [(4,)]),
        (
            "select count(*) from (select generate_series(date '2024-01-01', date '2024-01-05', interval '1 day')) q",
            [(5,)],
        ),
        ("select length(repeat('x', 60000000))", [(60_000_000,)]),
    ],
)
def test_the_rest_works(session, text, rows):
    assert list(session.execute(text).rows) == rows


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("select format('%4000000000s', 'x')", "54000"),
        ("select format('%*s', 4000000000, 'x')", "54000"),
        ("select format('%d', 1)", "22023"),
        ("select format('%I', null)", "22004"),
        ("select format('%s %s', 1)", "22023"),
    ],
)
def test_formats_that_are_refused(session, text, code):
    with pytest.raises(errors.Error) as failure:
        session.execute(text)
    assert failure.value.sqlstate == code
