"""Unique columns that are converted, and other primary keys, inside a transaction block."""

import pytest

from seachange.engine.session.session import Session
from tests.engine.blocks import ROWS, begin, ids, refused, rows
from tests.engine.test_block_conversions import is_at_rest
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

OTHER_KEY = "alter table a alter primary key using columns (x)"


@pytest.fixture
def keyed(sessions: tuple[Session, Session]) -> tuple[Session, Session]:
    """The values of x are unique, too."""
    sessions[1].execute("update a set x = id + 1000")
    return sessions


def test_unique_column_is_converted(keyed: tuple[Session, Session]):
    block, other = keyed
    other.execute("alter table a add unique (x)")
    begin(block)
    block.execute("update a set x = -x where id < 10")
    block.execute("insert into a values (200, 200, 'own')")
    block.execute("delete from a where id = 50")
    block.execute("insert into a values (201, 1050, 'own')")
    block.execute("alter table a alter x type text using 'v' || x")
    assert ids(block, "x in ('v-1005', 'v1050', 'v200')") == [5, 200, 201]
    block.execute("savepoint s")
    with refused("23505"):
        block.execute("insert into a values (202, 'v1060', 'own')")
    block.execute("rollback to s")
    block.execute("insert into a values (202, 'v1060', 'own') on conflict (x) do update set y = 'met'")
    other.execute("insert into a values (300, 300, 'other')")
    block.execute("commit")
    assert rows(other, "select id, y from a where x in ('v300', 'v1060') order by id") == [(60, "met"), (300, "other")]
    with refused("23505"):
        other.execute("insert into a values (301, 'v300', 'other')")
    assert is_at_rest(other)
    assert inspect(block.node) == []


@pytest.mark.parametrize("whose", ["committed", "own", "concurrent", "concurrent with own", "deleted"])
def test_values_that_become_equal_by_a_conversion(keyed: tuple[Session, Session], whose: str):
    block, other = keyed
    other.execute("alter table a add unique (x)")
    if whose in ("committed", "deleted"):
        other.execute("insert into a values (300, 3005, 'other')")
    sql = "alter table a alter x type text using 'v' || x % 1000"
    begin(block)
    if whose == "own":
        block.execute("insert into a values (200, 2005, 'own')")
    if whose == "concurrent with own":
        block.execute("insert into a values (200, 2500, 'own')")
    if whose == "deleted":
        block.execute("delete from a where id = 300")
    if whose in ("committed", "own"):
        with refused("23505"):
            block.execute(sql)
        block.execute("rollback")
    else:
        block.execute(sql)
    if whose.startswith("concurrent"):
        other.execute(f"insert into a values (300, {4005 if whose == 'concurrent' else 4500}, 'other')")
        with refused("40001"):
            block.execute("commit")
    block.execute("commit")
    assert is_at_rest(other)
    assert (ids(other, "x::text = 'v5'") == [5]) == (whose == "deleted")
    assert inspect(block.node) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_another_primary_key(keyed: tuple[Session, Session], bulk: bool):
    block, other = keyed
    other.execute("create index known on a (y)")
    other.execute("create table child (id int primary key, a_id int references a)")
    other.execute("insert into child values (1, 1)")
    begin(block)
    block.execute("update a set y = 'own'" if bulk else "update a set y = 'own' where id in (5, 6)")
    block.execute("insert into a values (200, 200, 'own')")
    block.execute("delete from a where id = 7")
    block.execute("update a set x = 8 where id = 8")
    block.execute(OTHER_KEY)
    assert rows(block, "select id, y from a where x in (8, 200, 1005, 1007) order by x")[1:] == [
        (200, "own"),
        (5, "own"),
    ]
    other.execute("insert into a values (300, 300, 'other')")
    if not bulk:
        other.execute("update a set x = 60, y = 'other' where id = 60")
        other.execute("delete from a where id = 61")
    block.execute("insert into a values (201, 201, 'own')")
    block.execute("update a set x = 9 where id = 9")
    block.execute("savepoint s")
    for values in ("(202, 300, 'own')", "(300, 202, 'own')", "(202, 1010, 'own')"):
        with refused("23505"):
            block.execute(f"insert into a values {values}")
        block.execute("rollback to s")
    with refused("23503"):
        block.execute("delete from a where x = 1001")
    block.execute("rollback to s")
    block.execute("insert into child values (2, 300)")
    before = rows(block, "select * from a order by id")
    block.execute("commit")
    for session in keyed:
        assert rows(session, "select * from a order by id") == before
        with refused("23505"):
            session.execute("insert into a values (203, 1005, 'late')")
        with refused("23502"):
            session.execute("insert into a values (203, null, 'late')")
        with refused("23503"):
            session.execute("delete from a where x = 300")
    assert is_at_rest(other)
    assert inspect(block.node) == []


def test_key_of_a_table_without_one(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create table bag (x int, y int)")
    other.execute(f"insert into bag select i, i from generate_series(1, {ROWS}) g (i)")
    begin(block)
    block.execute("update bag set y = 50 where x = 5")
    block.execute("insert into bag values (200, 1)")
    block.execute("delete from bag where x = 6")
    block.execute("alter table bag add primary key (x)")
    other.execute("insert into bag values (300, 1)")
    other.execute("update bag set y = 80 where x = 8")
    block.execute("update bag set y = y + 1 where x in (5, 8, 9, 200, 300)")
    wanted = [(5, 51), (8, 81), (9, 10), (200, 2), (300, 2)]
    assert rows(block, "select * from bag where x in (5, 6, 8, 9, 200, 300) order by x") == wanted
    block.execute("commit")
    assert rows(other, "select * from bag where x in (5, 6, 8, 9, 200, 300) order by x") == wanted
    with refused("23505"):
        other.execute("insert into bag values (5, 5)")
    assert inspect(block.node) == []


def test_type_of_a_primary_key_is_changed(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("update a set x = 50 where id < 10")
    block.execute("insert into a values (200, 7, 'own')")
    block.execute("delete from a where id = 90")
    block.execute("alter table a alter id type bigint using id * 2")
    other.execute("insert into a values (201, 8, 'other')")
    other.execute("update a set y = 'other' where id = 60")
    other.execute("delete from a where id = 61")
    other.execute("update a set id = 500 where id = 62")
    block.execute("update a set x = 5 where id in (120, 124, 126)")
    block.execute("commit")
    for session in sessions:
        assert rows(
            session, "select * from a where id in (4, 120, 122, 124, 126, 180, 400, 402, 1000) order by id"
        ) == [
            (4, 50, "r2"),
            (120, 5, "other"),
            (126, 5, "r63"),
            (400, 7, "own"),
            (402, 8, "other"),
            (1000, 2, "r62"),
        ]
    assert inspect(block.node) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_rows_get_keys_before_they_become_primary(keyed: tuple[Session, Session], bulk: bool):
    block, other = keyed
    other.execute("update a set x = null where id in (3, 4)")
    begin(block)
    block.execute("update a set y = 'own'" if bulk else "delete from a where id = 4")
    block.execute("savepoint s")
    with refused("23502"):
        block.execute(OTHER_KEY)
    block.execute("rollback to s")
    block.execute("update a set x = 30 + id where x is null")
    block.execute(OTHER_KEY)
    assert ids(block, "x < 40") == ([3, 4] if bulk else [3])
    other.execute("insert into a values (300, 300, 'other')")
    block.execute("commit")
    assert ids(other, "x < 40") == ([3, 4] if bulk else [3])
    assert inspect(block.node) == []


def test_key_of_two_committed_rows_is_no_primary_key(keyed: tuple[Session, Session]):
    block, other = keyed
    other.execute("update a set x = 1003 where id = 4")
    begin(block)
    block.execute("delete from a where id = 4")
    with refused("23505"):
        block.execute(OTHER_KEY)
    block.execute("rollback")
    assert is_at_rest(other)
    assert inspect(block.node) == []


@pytest.mark.parametrize("values", ["(300, null, 'other')", "(300, 1005, 'other')"])
def test_row_of_another_session_without_a_key_fails_the_block(keyed: tuple[Session, Session], values: str):
    block, other = keyed
    begin(block)
    block.execute(OTHER_KEY)
    other.execute(f"insert into a values {values}")
    other.execute("update a set y = 'other' where id = 300")
    with refused("40001"):
        block.execute("commit")
    assert ids(other, "y = 'other'") == [300]
    assert ids(other, "id = 5") == [5]
    assert inspect(block.node) == []


def test_parent_by_the_former_key_gets_no_child_when_a_block_deletes_it(keyed: tuple[Session, Session]):
    block, other = keyed
    other.execute("create table child (id int primary key, a_id int references a)")
    begin(block)
    block.execute(OTHER_KEY)
    block.execute("delete from a where id = 5")
    other.execute("insert into child values (1, 5)")
    with refused("40001"):
        block.execute("commit")
    assert rows(other, "select a_id from child join a on a.id = a_id") == [(5,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("sql", ["alter table a drop constraint a_pkey", "alter table a add n serial unique"])
def test_keys_on_drawn_values_are_refused_first(keyed: tuple[Session, Session], sql: str):
    """Where the rows are on their way to another index already."""
    block, other = keyed
    begin(block)
    block.execute(OTHER_KEY)
    known = rows(other, "select id, status, stage from seachange.jobs")
    with refused("0A000"):
        block.execute(sql)
    block.execute("rollback")
    assert len(rows(other, "select id from seachange.jobs")) == len(known)
    assert inspect(block.node) == []
