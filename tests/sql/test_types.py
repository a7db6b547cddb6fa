"""Columns of every type: what goes in comes out, in PostgreSQL's forms, and what is none of its values is refused."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest

import seachange
from seachange.values.interval import Interval


@pytest.fixture
def run(tmp_path):
    connection = seachange.connect(tmp_path / "db", autocommit=True)

    def run(sql, *values):
        cursor = connection.execute(sql, values)
        return cursor.fetchall() if cursor.description else None

    yield run
    connection.close()


def code_of(run, sql, *values):
    with pytest.raises(seachange.Error) as caught:
        run(sql, *values)
    return caught.value.sqlstate


def test_char_is_padded_and_compares_without(run):
    run("create table t (c char(3) primary key, d char(2)[])")
    run("insert into t values ('a', '{x}'), ('b  ', null), ('c', '{}')")
    assert run("select c from t order by c") == [("a  ",), ("b  ",), ("c  ",)]
    assert run("select c || 'x', length(c) from t where c = 'b '") == [("bx", 1)]
    assert run("select c || 'x' from t where c in ('q ', 'b  ')") == [("bx",)]
    assert run("select c || 'x' from t where c = $1 and d is null", "b  ") == [("bx",)]
    assert run("select c || 'x' from t where c in ($1, $2) or d is null", "c  ", "z") == [("bx",), ("cx",)]
    assert run("select c, d from t where c = $1", "a  ") == [("a  ", ["x "])]
    assert code_of(run, "insert into t values ('a ')") == "23505"
    assert code_of(run, "insert into t values ('abcd')") == "22001"
    assert run("select 'abcdef'::char(3), 'a '::char(3) || 'b'") == [("abc", "ab")]


def test_jsonb_is_normalised_and_json_is_not(run):
    run("create table t (id int primary key, j json, b jsonb)")
    text = '{"bb":1.50, "a":[1,2], "bb": 2}'
    run("insert into t values (1, $1, $1)", text)
    run("insert into t values (2, null, $1)", {"x": Decimal("1.10")})
    run("insert into t select 3, $1::json, $1::jsonb", text)
    normal = '{"a": [1, 2], "bb": 2}'
    assert run("select j, b from t order by id") == [(text, normal), (None, '{"x": 1.10}'), (text, normal)]
    run("update t set b = b || '{\"z\": null}' where id = 1")
    assert run("select b - 'a', b->'a'->1, b->>'z', b ? 'z' from t where id = 1") == [
        ('{"z": null, "bb": 2}', "2", None, True)
    ]
    run("update t set b = (b || $1) - 'x' where id = 2", {"y": 1, "x": 2})
    assert run("select b from t where id = 2") == [('{"y": 1}',)]
    run("update t set b = $1 where id = 2", {"x": Decimal("1.10")})
    assert run("select id from t where b @> '{\"x\": 1.1}'") == [(2,)]
    assert run("select id from t where b @> $1", {"x": 1.1}) == [(2,)]
    assert run("select b #>> '{a,0}', b #> '{a}', b ?| array['q','a'], b ?& '{q,a}' from t where id = 3") == [
        ("1", "[1, 2]", True, False)
    ]
    assert code_of(run, "insert into t values (4, '{')") == "22P02"
    assert code_of(run, "insert into t values (4, null, '{')") == "22P02"
    assert code_of(run, "select $1::jsonb", "{") == "22P02"


def test_an_index_on_a_field_of_a_document(run):
    run("create table t (id int primary key, b jsonb)")
    run("create index on t ((b->>'k'))")
    run('insert into t values (1, \'{"k": "x"}\'), (2, \'{"k": 1.50}\')')
    run("insert into t select i, ('{\"k\": ' || i || '}')::jsonb from generate_series(3, 20000) i")
    assert run("select id from t where b->>'k' = '1.50'") == [(2,)]
    assert run("select id from t where b->>'k' = '777'") == [(777,)]
    run("create index later on t ((b->'k'->>'z'))")
    assert run("select count(*) from t where b->'k'->>'z' is null") == [(20000,)]


def test_intervals_keep_months_days_and_time_apart(run):
    run("create table t (id int primary key, i interval default '1 mon', a interval[])")
    run("insert into t (id) values (1)")
    run("insert into t values (2, '1 year -2 days 03:00:00.000001', '{1 day, NULL}')")
    run("insert into t values (3, $1, $2)", dt.timedelta(days=1, seconds=2), [Interval(1, 2, 3)])
    run("insert into t select 4, i * 2, a from t where id = 2")
    assert run("select i, a from t order by id") == [
        (Interval(1, 0, 0), None),
        (Interval(12, -2, 10_800_000_001), [Interval(0, 1, 0), None]),
        (Interval(0, 1, 2_000_000), [Interval(1, 2, 3)]),
        (Interval(24, -4, 21_600_000_002), [Interval(0, 1, 0), None]),
    ]
    assert run("select id from t where i > '20 months' order by i") == [(4,)]
    assert run("select '2020-01-31'::date + i from t where id = 1") == [(dt.datetime(2020, 2, 29),)]
    assert run("select '2020-01-31'::timestamp + $1", Interval(1)) == [(dt.datetime(2020, 2, 29),)]
    assert run("update t set i = i + interval '1 day' where id = 1 returning i") == [(Interval(1, 1, 0),)]
    assert code_of(run, "insert into t values (5, '1 fortnight')") == "22007"
    run("create table s (x text)")
    run("insert into s select i from t where id = 2")
    assert run("select x from s") == [("1 year -2 days +03:00:00.000001",)]
    assert code_of(run, "alter table t alter i type text") == "0A000"


def test_arrays_are_stored_and_returned(run):
    run("create table t (id int primary key, n int[], s text[], u uuid[], z timestamptz[])")
    one = UUID(int=1)
    run("insert into t values (1, '{1,NULL,3}', $1, $2, '{2020-01-01 00:00:00+00}')", ["a", 'b "c', None, ""], [one])
    run("insert into t values (2, array[1,2], array['x'], null, array[]::timestamptz[])")
    run("insert into t select 3, n || array[9], s, u, z from t where id = 1")
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    first = ([1, None, 3], ["a", 'b "c', None, ""], [one], [moment])
    assert run("select n, s, u, z from t order by id") == [
        first,
        ([1, 2], ["x"], None, []),
        ([1, None, 3, 9], *first[1:]),
    ]
    assert run("select id from t where 2 = any(n)") == [(2,)]
    assert run("select n[1], n[5], n @> array[3], n && array[9] from t where id = 3") == [(1, None, True, True)]
    assert run("update t set n = '{}' where id = 2 returning n") == [([],)]
    assert code_of(run, "insert into t values (4, '{a}')") == "22P02"
    assert code_of(run, "insert into t values (4, '{1')") == "22P02"
    assert code_of(run, "insert into t values (4, '{{1}}')") == "0A000"
    assert code_of(run, "create index on t (n)") == "0A000"


def test_moments_are_rounded_to_their_digits(run):
    run("create table t (id int primary key, a timestamp(3), b timestamptz(0), c time(1))")
    run("insert into t values (1, '2020-01-01 00:00:00.0015', '2020-01-01 00:00:00.5+00', '10:00:00.25')")
    run("insert into t select 2, a + interval '600 us', b, '10:00:00.14'::time from t")
    second = dt.datetime(2020, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert run("select a, b, c from t order by id") == [
        (dt.datetime(2020, 1, 1, 0, 0, 0, 2000), second, dt.time(10, 0, 0, 300_000)),
        (dt.datetime(2020, 1, 1, 0, 0, 0, 3000), second, dt.time(10, 0, 0, 100_000)),
    ]


def test_a_numeric_without_digits_has_no_zeros_at_its_end(run):
    run("create table t (id int primary key, n numeric, m numeric(10,2))")
    run("insert into t values (1, 1.50, 1.5), (2, 12345678901234567890, 0)")
    assert [str(n) for (n,) in run("select n from t order by id")] == ["1.5", "12345678901234567890"]
    assert str(run("select m from t where id = 1")[0][0]) == "1.50"
    assert code_of(run, "insert into t values (3, 1e20)") == "22003"
    assert code_of(run, "insert into t values (3, 1e-19)") == "22003"
    assert code_of(run, "select 1e400::float8") == "22003"
    assert code_of(run, "select 'infinity'::timestamp") == "0A000"


def test_types_change_without_and_with_rewriting(run):
    run("create table t (id int primary key, c char(3), s text, m timestamp)")
    run("insert into t values (1, 'a', '{\"b\":1,\"a\":2}', '2020-01-01 00:00:00.1234')")
    run("alter table t alter c type char(5)")
    run("alter table t alter s type jsonb using s::jsonb")
    run("alter table t alter m type timestamp(2)")
    assert run("select c, s, m from t") == [("a    ", '{"a": 2, "b": 1}', dt.datetime(2020, 1, 1, 0, 0, 0, 120_000))]
    run("alter table t alter c type text")
    assert run("select c from t") == [("a",)]


@pytest.mark.parametrize("count", [1, 12_000])
def test_a_table_of_the_same_names_has_types_of_its_own(tmp_path, count):
    """Zoned timestamps are asked for in another form, which is remembered with the types that it was found for."""

    def first_type(sql, *values):
        described = connection.execute(sql, values).description
        assert described is not None
        return described[0][1]

    with seachange.connect(tmp_path / "db", autocommit=True) as connection:
        for type_, oid in (("integer", 23), ("boolean", 16), ("numeric(8,2)", 1700)):
            connection.execute(f"create table t (a {type_}, at timestamptz)")
            connection.execute(f"insert into t select '1', '2024-01-01' from generate_series(1, {count})")
            assert first_type("select a, at from t limit 1") == oid
            connection.execute("drop table t")
        assert [first_type("select $1 as a, interval '1 day'", value) for value in (1, "x")] == [23, 25]
