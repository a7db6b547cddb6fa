"""The time zone of a session: values that clients give and get, and files."""

import datetime as dt
import io
from zoneinfo import ZoneInfo

import pytest

import seachange
from seachange.sql.duck.stream import ROWS_MAX

BERLIN = ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2024, 7, 1, 12, tzinfo=BERLIN)


@pytest.fixture
def db(tmp_path):
    with seachange.connect(tmp_path / "data", autocommit=True) as connection:
        connection.execute("create table t (id int primary key, z timestamptz)")
        connection.execute("set time zone 'Europe/Berlin'")
        yield connection


@pytest.mark.parametrize("query", ["select z from t where id = 1", "select z from t", "select max(z) as z from t"])
def test_moments_come_in_the_zone(db, query):
    db.execute("insert into t values (1, %s)", (NOON.astimezone(dt.UTC),))
    (found,) = db.execute(query).fetchone()
    assert found == NOON
    assert found.isoformat() == "2024-07-01T12:00:00+02:00"
    (found,) = db.execute("update t set id = 2 returning z").fetchone()
    assert found.utcoffset() == dt.timedelta(hours=2)
    db.execute("reset timezone")
    (found,) = db.execute("select z from t").fetchone()
    assert (found, found.utcoffset()) == (NOON, dt.timedelta(0))


def test_a_moment_without_a_zone_is_one_of_the_session(db):
    db.execute("insert into t values (1, %s)", (dt.datetime(2024, 7, 1, 12),))
    db.execute("insert into t select 2, %s", (dt.datetime(2024, 7, 1, 12),))
    assert db.execute("select count(*) from t where z = %s", (NOON,)).fetchone() == (2,)
    assert db.execute("select count(*) from t where z = %s", (dt.datetime(2024, 7, 1, 12),)).fetchone() == (2,)


@pytest.mark.parametrize("count", [3, ROWS_MAX + 1])
def test_copy_reads_and_writes_times_in_the_time_zone_of_the_session(db, count):
    """Many rows are read where the session's own thread is not."""
    db.copy_from("t", io.StringIO("".join(f"{i},2024-07-01 12:00\n" for i in range(count))))
    assert db.execute("select count(*), min(z), max(z) from t").fetchone() == (count, NOON, NOON)
    out = io.StringIO()
    db.copy_to("select z from t where id = 1", out)
    assert out.getvalue() == "2024-07-01 12:00:00+02\n"


def test_many_rows_are_changed_in_the_zone(db):
    count = ROWS_MAX + 1
    db.execute(f"insert into t select i, '2024-07-01 12:00' from generate_series(1, {count}) g(i)")
    db.execute("update t set z = '2024-07-02 12:00'")
    assert db.execute("select count(*) from t where z = %s", (NOON + dt.timedelta(days=1),)).fetchone() == (count,)
