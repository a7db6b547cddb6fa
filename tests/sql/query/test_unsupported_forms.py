"""What PostgreSQL has and Seachange has not is refused with 0A000 and words of our own; what has a meaning is read."""

import pytest

import seachange


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with seachange.connect(data=tmp_path_factory.mktemp("forms"), autocommit=True) as made:
        made.execute("create table g (id int generated always as identity primary key, b text)")
        made.execute("create table h (id int primary key)")
        yield made


TYPES = ["money", "xml", "bit(3)", "varbit", "pg_lsn", "timetz", "citext", "hstore", "point", "int4range", "macaddr"]


@pytest.mark.parametrize("type_", [*TYPES, "regclass", "xid", "tsvector", "jsonpath", "_money"])
def test_a_column_of_a_missing_type_is_not_supported(connection, type_):
    assert refused(connection, f"create table t (a {type_})")


@pytest.mark.parametrize("type_", TYPES)
def test_a_cast_to_a_missing_type_is_not_supported(connection, type_):
    assert refused(connection, f"select '1'::{type_}")
    assert refused(connection, f"select cast(b as {type_}) from g")


@pytest.mark.parametrize(
    "text",
    [
        "select * from g where current of c",
        "select string_agg(b, b) over () from g",
        "select * from json_table('[]', '$[*]' columns (a int path '$.a')) j",
        "create table t (a interval day to second)",
    ],
)
def test_a_missing_form_is_not_supported(connection, text):
    assert refused(connection, text)


def refused(connection, text):
    with pytest.raises(seachange.Error) as problem:
        connection.execute(text)
    return problem.value.sqlstate == "0A000" and "DuckDB" not in str(problem.value)


def test_an_unknown_type_does_not_exist(connection):
    for text in ("create table t (a nosuch)", "select '1'::nosuch", "create table t (a _nosuch)"):
        with pytest.raises(seachange.Error) as problem:
            connection.execute(text)
        assert problem.value.sqlstate == "42704"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("select '{1,2}'::int[2]", [1, 2]),
        ("select ('{1,2}'::int[])[2]", 2),
        ("select '{1,2}'::_int4", [1, 2]),
        ("select cast('{a}' as _text)", ["a"]),
        ("select pg_typeof(1.5::float(8))::text", "real"),
        ("select pg_typeof(1.5::float(25))::text", "double precision"),
        ("select string_agg(v, ',' order by v) from (values ('b'), ('a')) t (v)", "a,b"),
    ],
)
def test_names_and_sizes_of_types(connection, text, value):
    assert connection.execute(text).fetchall() == [(value,)]


def test_definitions_as_dumps_and_tools_write_them(connection):
    connection.execute(
        'create table d (a _int4, b interval(6), c int, check (c > 0) not valid) tablespace "pg_default"'
    )
    connection.execute("insert into d values ('{1}', '1 day', 1)")
    with pytest.raises(seachange.IntegrityError):
        connection.execute("insert into d values ('{1}', '1 day', 0)")
    valid = connection.execute(
        "select convalidated from pg_constraint where conrelid = 'd'::regclass and contype = 'c'"
    )
    assert valid.fetchall() == [(True,)]
    types = connection.execute(
        "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'd'::regclass and attnum > 0"
    )
    assert [name for (name,) in types] == ["integer[]", "interval", "integer"]


def test_sums_of_intervals(connection):
    found = connection.execute(
        "select id, sum(i) filter (where id > 1) over (order by id), sum(i) over () "
        "from (values (1, interval '1 mon'), (2, interval '2 days'), (3, interval '3:00')) v (id, i) order by id"
    ).fetchall()
    spans = [(None if part is None else (part.months, part.days, part.microseconds)) for _, part, _ in found]
    assert spans == [None, (0, 2, 0), (0, 2, 3 * 3600 * 1_000_000)]
    assert {(whole.months, whole.days, whole.microseconds) for _, _, whole in found} == {(1, 2, 3 * 3600 * 1_000_000)}
