"""Default privileges belong to a database, as in PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import seachange
from seachange.engine.api import Connection

_GRANTED = "select has_table_privilege('ann', 'made', 'SELECT')"
_LISTED = "select count(*) from pg_default_acl"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with seachange.connect(tmp_path / "db", autocommit=True) as first:
        first.execute("create database other")
        first.execute("create role ann")
    return tmp_path / "db"


@pytest.fixture
def first(data: Path) -> Iterator[Connection]:
    with seachange.connect(data, autocommit=True) as opened:
        yield opened


@pytest.fixture
def other(data: Path, first: Connection) -> Iterator[Connection]:
    with seachange.connect(data, database="other", autocommit=True) as opened:
        yield opened


def _answers(connection: Connection) -> tuple[object, object]:
    connection.execute("create table made (id int)")
    found = connection.execute(_GRANTED).fetchone(), connection.execute(_LISTED).fetchone()
    connection.execute("drop table made")
    return found


@pytest.mark.parametrize("is_first", [True, False])
def test_default_privileges_apply_in_the_database_of_the_session(
    first: Connection, other: Connection, is_first: bool
) -> None:
    here, elsewhere = (first, other) if is_first else (other, first)
    here.execute("alter default privileges grant select on tables to ann")
    assert _answers(here) == ((True,), (1,))
    assert _answers(elsewhere) == ((False,), (0,))
    elsewhere.execute("alter default privileges revoke select on tables from ann")
    assert _answers(here) == ((True,), (1,))
    here.execute("alter default privileges revoke select on tables from ann")
    assert _answers(here) == ((False,), (0,))


def test_default_privileges_follow_a_renamed_database(data: Path, first: Connection, other: Connection) -> None:
    other.execute("alter default privileges grant select on tables to ann")
    other.close()
    first.execute("alter database other rename to another")
    with seachange.connect(data, database="another", autocommit=True) as another:
        assert _answers(another) == ((True,), (1,))


def test_default_privileges_go_with_their_database(first: Connection, other: Connection) -> None:
    other.execute("alter default privileges grant select on tables to ann")
    with pytest.raises(seachange.Error) as caught:
        first.execute("drop role ann")
    assert caught.value.sqlstate == "2BP01"
    other.close()
    first.execute("drop database other")
    first.execute("drop role ann")


def test_drop_owned_drops_default_privileges_of_its_database_only(first: Connection, other: Connection) -> None:
    for each in (first, other):
        each.execute("alter default privileges grant select on tables to ann")
    first.execute("drop owned by ann")
    assert _answers(first) == ((False,), (0,))
    assert _answers(other) == ((True,), (1,))
