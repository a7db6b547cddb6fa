"""Dates and times that no client value can hold are errors of the statement, whichever way it meets them."""

import pytest

import seachange


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with seachange.connect(data=tmp_path_factory.mktemp("moments"), autocommit=True) as made:
        made.execute("create table m (id int primary key, d date, t timestamp, z timestamptz)")
        made.execute("insert into m values (1, '9999-12-31', '9999-12-31 23:00', '9999-12-31 23:00+00')")
        yield made


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "select d + 1 from m"),
        ("UTC", "select array[d, d + 1] from m"),
        ("UTC", "select t + interval '1 day' from m"),
        ("UTC", "select z + interval '1 day' from m"),
        ("UTC", "select time '24:00:00'"),
        ("UTC", "select '0000-01-01'::date"),
        ("UTC", "insert into m values (2, '9999-12-31'::date + 1)"),
        ("UTC", "insert into m select 2, d + 1 from m"),
        ("UTC", "update m set d = d + 1"),
        ("UTC", "update m set t = t + interval '1 day'"),
        ("Asia/Tokyo", "select z from m"),
        ("Asia/Tokyo", "select array_agg(z) from m"),
        ("America/Chicago", "insert into m (id, z) values (2, '9999-12-31 23:59:59')"),
        ("America/Chicago", "update m set z = '9999-12-31 23:59:59' where id = 1"),
    ],
)
def test_a_value_beyond_the_year_9999_is_out_of_range(connection, zone, text):
    connection.execute(f"set timezone = '{zone}'")
    with pytest.raises(seachange.Error) as problem:
        connection.execute(text).fetchall()
    assert problem.value.sqlstate == "22008"


def test_such_a_value_can_be_compared_and_shown_as_text(connection):
    connection.execute("set timezone = 'Asia/Tokyo'")
    found = connection.execute("select (d + 1)::text, d + 1 > d, z::text from m").fetchall()
    assert found == [("10000-01-01", True, "10000-01-01 08:00:00+09")]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_generate_series_steps_by_months_and_days(connection, kind):
    connection.execute("set timezone = 'UTC'")
    text = f"select to_char(g, 'YYYY-MM-DD') from generate_series({kind} '2020-01-31', '2020-06-01', '1 month 1 day') g"
    assert [day for (day,) in connection.execute(text)] == ["2020-01-31", "2020-03-01", "2020-04-02", "2020-05-03"]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("select * from generate_series(1, 10, 0)", "22023"),
        ("select * from generate_series(timestamp '2022-01-01', timestamp '2023-01-01', '0 days')", "22023"),
        ("select * from generate_series(timestamp '2022-01-01', timestamp '2023-01-01', '1 month -1 day')", "0A000"),
        ("select current_schemas()", "42883"),
    ],
)
def test_what_has_no_value_is_no_internal_error(connection, text, sqlstate):
    with pytest.raises(seachange.Error) as problem:
        connection.execute(text)
    assert problem.value.sqlstate == sqlstate
