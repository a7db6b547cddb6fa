"""Statements by full key and VALUES of literals run without DuckDB, and answer as DuckDB would."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.run.execute import prepare, run_statement


class NoDuck(DuckSession):
    """A DuckDB session that must not be used."""

    def __init__(self):
        pass

    def rows(self, query):
        raise AssertionError(f"DuckDB was asked for {query.sql}")


@pytest.fixture
def session(tmp_path):
    node = open_node(tmp_path)
    session = Session(node)
    session.execute("create table t (id int primary key, n bigint, s text default 'd', m numeric(6,2))")
    session.execute("insert into t values (1, 10, 'a', 1.5), (2, null, 'b', null)")
    session.execute("create table pairs (a text, b int, v int, primary key (b, a))")
    session.execute("insert into pairs values ('x', 1, 5)")
    session.execute("create table marked (id int primary key, mark text unique, v int)")
    session.execute("create index on marked (v)")
    session.execute("insert into marked values (1, 'm1', 5), (2, 'm2', 5), (3, 'm3', 6), (4, null, null)")
    yield session
    session.close()
    node.close()


def run_without_duck(session, text, values=()):
    return session.in_transaction(
        lambda transaction: run_statement(prepare(text)[0], transaction.port, NoDuck(), values, [])
    )


FAST = [
    ("select * from t where id = 1", [], [(1, 10, "a", Decimal("1.50"))]),
    ("select n as x, id from t where id = $1", [1], [(10, 1)]),
    ("select q.s from t as q where q.id = $1", [2], [("b",)]),
    ("select s from public.t where (1) = id", [], [("a",)]),
    ("select s from t where id = '2'", [], [("b",)]),
    ("select s from t where id = $1", ["2"], [("b",)]),
    ("select s from t where id = $1", [None], []),
    ("select s from t where id = $1", [2**40], []),
    ("select s from t where id = 9", [], []),
    ("select v from pairs where a = 'x' and b = $1", [1], [(5,)]),
    ("select v from pairs where b = 1 and a = $1", ["y"], []),
    # Through an index, or by a part of the key.
    ("select v from pairs where b = 1", [], [(5,)]),
    ("select s from t where id = 1 and n = 10", [], [("a",)]),
    ("select s from t where id = 1 and n = 11", [], []),
    ("select S as X from t where ID in ($1, 7, null, 2) and 'a' < t.s", [1], [("b",)]),
    ("select id from t where id between 2 and $1", [9], [(2,)]),
    ("select id from t where id >= 2 and id < 3", [], [(2,)]),
    ("select * from marked where mark = 'm1'", [], [(1, "m1", 5)]),
    ("select id from marked where mark = $1", ["none"], []),
    ("select id from marked where mark = $1", [None], []),
    ("select mark, id from marked where v = 5 and mark >= 'm2'", [], [("m2", 2)]),
    ("select mark from marked where v > 4 and v <= 6 and mark in ('m1', 'm3')", [], [("m1",), ("m3",)]),
]


FAST_RETURNING = [
    ("insert into t values (3, 30, $1, null) returning *", ["c"], [(3, 30, "c", None)]),
    ("insert into t (id) values (3) returning s as x, id", [], [("d", 3)]),
    ("update t set n = n + $1 where id = 1 returning n, t.id", [5], [(15, 1)]),
    ("delete from t where id = 2 returning *", [], [(2, None, "b", None)]),
    ("delete from t where id = 9 returning s", [], []),
    ("insert into t (id, n) values (1, 7) on conflict (id) do update set n = excluded.n returning n", [], [(7,)]),
    ("insert into t (id, n) values (1, 7) on conflict do nothing returning n", [], []),
]


@pytest.mark.parametrize(("text", "values", "expected"), FAST_RETURNING)
def test_rows_of_changes_come_without_duckdb(session, text, values, expected):
    assert list(run_without_duck(session, text, values).rows) == expected


@pytest.mark.parametrize(("text", "values", "expected"), FAST)
def test_select_by_key_runs_without_duckdb(session, text, values, expected):
    assert list(run_without_duck(session, text, values).rows) == expected


@pytest.mark.parametrize(
    ("text", "values", "row"),
    [
        ("insert into t values (3, 5, 'c', 2)", [], (3, 5, "c", Decimal("2.00"))),
        ("insert into t (id) values ($1)", [3], (3, None, "d", None)),
        ("insert into t (m, id, s) values ($1, $2, default)", ["1.005", "3"], (3, None, "d", Decimal("1.01"))),
        ("insert into t (id, n) values (3, -5)", [], (3, -5, "d", None)),
        ("update t set id = 3, n = $1 where id = 1", [7], (3, 7, "a", Decimal("1.50"))),
        ("update t set id = $1, n = n + $2, m = m - 1 where id = 1", [3, 5], (3, 15, "a", Decimal("0.50"))),
        ("update t set id = 3, n = n + 1 where id = 2", [], (3, None, "b", None)),
        ("update t set id = 3, s = default, m = null where id = 1", [], (3, 10, "d", None)),
        ("update t set id = 3, n = n + 0.5 where id = 1", [], (3, 11, "a", Decimal("1.50"))),
    ],
)
def test_change_by_key_runs_without_duckdb(session, text, values, row):
    assert run_without_duck(session, text, values).count == 1
    assert list(session.execute("select * from t where id = 3").rows) == [row]


def test_delete_by_key_runs_without_duckdb(session):
    assert run_without_duck(session, "delete from t where id = $1", [1]).count == 1
    assert run_without_duck(session, "delete from t where id = $1", [1]).count == 0
    assert run_without_duck(session, "update t set n = 1 where id = $1", [1]).count == 0


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("select s from t where id = $1", [1.0], [("a",)]),
        ("select s from t where id = $1", [1.5], []),
        ("select s from t where id = 1.5", [], []),
        ("select s from t where id = $1", [Decimal("2")], [("b",)]),
        ("select s from t where id = 1 or id = 2 order by id", [], [("a",), ("b",)]),
        ("select upper(s) from t where id = 1", [], [("A",)]),
        ("select s from t where id = 1 limit 0", [], []),
        ("select s from t where id = n", [], []),
        ("select s from t where n = 10", [], [("a",)]),
        ("select s from t where id = 1 and s like 'a%'", [], [("a",)]),
        ("select s from t where id = 1 and id + 1 = 2", [], [("a",)]),
        ("select s from t where id in (1, 1.5)", [], [("a",)]),
        ("select s, 1 from t where id > 1", [], [("b", 1)]),
    ],
)
def test_left_to_duckdb(session, text, values, expected):
    with pytest.raises(AssertionError):
        run_without_duck(session, text, values)
    session.rollback()
    assert list(session.execute(text, values).rows) == expected


def test_errors_are_the_same(session):
    for text, values, code in [
        ("select s from t where id = $1", ["x"], "22P02"),
        ("update t set n = n + $1 where id = 1", [2**63 - 1], "22003"),
        ("update t set n = $1 where id = 1", ["x"], "22P02"),
        ("insert into t (id) values ($1)", [2**40], "22003"),
    ]:
        with pytest.raises(errors.Error) as caught:
            run_without_duck(session, text, values)
        assert caught.value.sqlstate == code


KEYS = [
    ("boolean", True, "true"),
    ("bigint", 5, "5"),
    ("double precision", 1.5, "1.5"),
    ("numeric(6,2)", Decimal("1.50"), "1.5"),
    ("text", "it's", "it's"),
    ("varchar(4)", "abcd", "abcd"),
    ("bytea", b"\x00\xff", "\\x00ff"),
    ("date", dt.date(2024, 2, 9), "2024-02-09"),
    ("time", dt.time(1, 2, 3), "01:02:03"),
    ("timestamp", dt.datetime(2024, 2, 9, 1), "2024-02-09 01:00"),
    ("timestamptz", dt.datetime(2024, 2, 9, 1, tzinfo=dt.UTC), "2024-02-09 03:00+02"),
    ("uuid", UUID(int=5), str(UUID(int=5))),
]


@pytest.mark.parametrize(("type_", "value", "text"), KEYS)
def test_keys_of_every_type(session, type_, value, text):
    session.execute(f"create table k (id {type_} primary key, v int)")
    session.execute("insert into k values ($1, 1)", [value])
    for given in (value, text):
        assert list(run_without_duck(session, "select id from k where id = $1", [given]).rows) == [(value,)]
    assert list(session.execute("select id from k where id = $1 and v = 1", [value]).rows) == [(value,)]


def test_numbers_keep_all_of_their_digits(session):
    """Decimals of Python round to 28 when they are negated, added or multiplied."""
    wide = "1234567890123456789012345678.1234567891"
    session.execute("create table wide (id int primary key, m numeric(38,10))")
    run_without_duck(session, f"insert into wide values (1, -{wide}), (2, 0), (3, 0), (4, -0.0)")
    run_without_duck(session, f"update wide set m = m + {wide} where id = 2")
    run_without_duck(session, f"update wide set m = m - {wide} where id = 3")
    found = session.execute("select m from wide order by id").rows
    assert [str(m) for (m,) in found] == [f"-{wide}", wide, f"-{wide}", "0E-10"]


def test_wide_numbers_are_shown_whole(session):
    wide = "1234567890123456789012345678.1234567891"
    session.execute("create table wide (id int primary key, m numeric(38,10))")
    session.execute(f"insert into wide values (1, -{wide})")
    pattern = f"FM{'9' * 28}.{'9' * 10}"
    asked = f"select to_char(m, '{pattern}'), to_json(m)::text, json_build_array(m)::text from wide"
    assert session.execute(asked).rows == [(f"-{wide}", f"-{wide}", f"[-{wide}]")]
