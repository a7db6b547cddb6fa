"""Changes that rewrite the rows of a table inside a transaction block: the block goes on with the new rows at once,
other sessions with its COMMIT, or never."""

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, ROWS, begin, ids, indexes, jobs, refused, rows, run_until_killed, sent
from tests.support.judge import inspect
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

TO_TEXT = "alter table a alter x type text using 'v' || x"


def column_type(session: Session, column: str = "x") -> str:
    sql = f"select data_type from information_schema.columns where table_name = 'a' and column_name = '{column}'"
    ((name,),) = rows(session, sql)
    return str(name)


def is_at_rest(session: Session) -> bool:
    """Whether the published version of the table has no hidden parts."""
    session.node.read_head()
    table = next(t for t in session.node.epoch.schemas.newest.by_id.values() if t.name == "a")
    states = {column.state.value for column in table.columns} | {index.state.value for index in table.indexes}
    return table.next_primary is None and states == {"PUBLIC"}


@pytest.mark.parametrize("level", LEVELS)
def test_converted_values_are_seen_at_once_and_by_others_after_commit(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    if level == "read committed":
        block.execute("update a set x = x * 2 where id < 10")
        block.execute("insert into a values (200, 7, 'own')")
        block.execute("delete from a where id = 4")
    block.execute(TO_TEXT)
    if level != "read committed":
        block.execute("update a set x = 'v' || id * 2 where id < 10")
        block.execute("insert into a values (200, 'v7', 'own')")
        block.execute("delete from a where id = 4")
    wanted = "select id, x from a where id in (1, 4, 5, 55, 200) order by id"
    assert rows(block, wanted) == [(1, "v2"), (5, "v10"), (55, "v5"), (200, "v7")]
    assert rows(other, wanted) == [(1, 1), (4, 4), (5, 5), (55, 5)]
    assert (column_type(block), column_type(other)) == ("text", "integer")
    # What the others write meanwhile is converted too.
    other.execute("insert into a values (300, 8, 'other')")
    other.execute("update a set x = 9 where id = 60")
    other.execute("delete from a where id = 70")
    seen = "select id, x from a where id in (60, 70, 300) order by id"
    newest = [(60, "v9"), (300, "v8")]
    assert rows(block, seen) == (newest if level == "read committed" else [(60, "v0"), (70, "v0")])
    block.execute("update a set x = x || '!' where id in (5, 55)")
    block.execute("insert into a values (201, 'text', 'own')")
    block.execute("commit")
    for session in sessions:
        assert rows(session, wanted) == [(1, "v2"), (5, "v10!"), (55, "v5!"), (200, "v7")]
        assert rows(session, seen) == newest
        assert rows(session, "select count(*), max(x) from a") == [(ROWS - 2 + 3, "v9")]
    assert jobs(other) == [("succeeded", "")]
    assert is_at_rest(other)
    assert inspect(block.node) == []


def test_rows_of_bulk_writes_are_converted(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create index known on a (x)")
    begin(block)
    block.execute("update a set x = x + 100")
    block.execute("insert into a select i, i, 'bulk' from generate_series(1000, 9000) g (i)")
    block.execute(TO_TEXT)
    assert ids(block, "x = 'v107'") == list(range(7, ROWS + 1, 10))
    assert ids(block, "x = 'v8000'") == [8000]
    block.execute("create index i on a (x, y)")
    block.execute("update a set x = 'own' where id in (1, 1000)")
    other.execute("insert into a values (500, 107, 'other')")
    assert ids(block, "x = 'v107'") == [*range(7, ROWS + 1, 10), 500]
    block.execute("commit")
    assert indexes(other) == {"known", "i"}
    assert ids(other, "x = 'v107'") == [*range(7, ROWS + 1, 10), 500]
    assert ids(other, "x = 'own'") == [1, 1000]
    assert rows(other, "select count(*) from a where y = 'bulk' and x like 'v%'") == [(8000,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("end", ["rollback", "rollback to s", "failure"])
def test_nothing_is_left_of_a_conversion_that_is_undone(sessions: tuple[Session, Session], end: str):
    block, other = sessions
    begin(block)
    block.execute("update a set x = 55 where id = 5")
    block.execute("savepoint s")
    block.execute(TO_TEXT)
    block.execute("update a set x = 'text' where id = 6")
    other.execute("insert into a values (300, 8, 'other')")
    if end == "failure":
        with refused("22P02"):
            block.execute("select cast(x as int) from a")
        end = "rollback to s"
    block.execute(end)
    if end == "rollback to s":
        assert rows(block, "select id, x from a where id in (5, 6, 300) order by id") == [(5, 55), (6, 6), (300, 8)]
        block.execute("update a set x = x + 1 where id in (5, 6)")
        block.execute("commit")
    assert is_at_rest(other)
    kept = [(5, 56), (6, 7), (300, 8)] if end == "rollback to s" else [(5, 5), (6, 6), (300, 8)]
    assert rows(other, "select id, x from a where id in (5, 6, 300) order by id") == kept
    other.execute(TO_TEXT)
    assert inspect(block.node) == []


def test_row_of_another_session_without_a_value_is_accepted_and_fails_the_block(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("update a set y = id")
    begin(block)
    block.execute("alter table a alter y type int using y::int")
    other.execute("insert into a values (300, 1, 'other')")
    with pytest.raises(errors.SerializationFailure) as caught:
        block.execute("commit")
    assert 'column "y" has no value for a row of a concurrent transaction' in str(caught.value)
    assert "(id)=(300)" in str(caught.value)
    assert is_at_rest(other)
    other.execute("delete from a where id = 300")
    # A writer that has planned before the COMMIT is checked after it.
    begin(block)
    block.execute("alter table a alter y type int using y::int")
    begin(other)
    other.execute("insert into a values (301, 1, 'other')")
    block.execute("commit")
    with refused("22P02"):
        other.execute("commit")
    assert inspect(block.node) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_column_is_converted_after_rows_are_corrected(sessions: tuple[Session, Session], bulk: bool):
    block, other = sessions
    other.execute("update a set y = id" if bulk else "update a set y = id where id > 4")
    other.execute("update a set y = 'bad' where id = 4")
    sql = "alter table a alter y type int using y::int"
    begin(block)
    block.execute("savepoint s")
    with pytest.raises(errors.DataError) as caught:
        block.execute(sql)
    assert "(id)=" in str(caught.value)
    block.execute("rollback to s")
    block.execute("update a set y = '0' || y where id > 4" if bulk else "update a set y = '7' where id < 4")
    block.execute("savepoint s")
    with refused("22P02"):
        block.execute(sql)
    block.execute("rollback to s")
    block.execute("delete from a where id = 4")
    block.execute(sql)
    other.execute("insert into a values (300, 1, '9')")
    block.execute("commit")
    for session in sessions:
        assert rows(session, "select sum(y) from a where id > 4") == [(sum(range(5, ROWS + 1)) + 9,)]
        assert ids(session, "id < 6") == [1, 2, 3, 5]
    assert inspect(block.node) == []


def test_constraints_over_converted_columns_are_validated_under_own_rows(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("update a set x = null where id = 3")
    begin(block)
    block.execute(TO_TEXT)
    block.execute("savepoint s")
    with refused("23502"):
        block.execute("alter table a alter x set not null")
    block.execute("rollback to s")
    block.execute("update a set x = 'v' where id = 3")
    block.execute("update a set y = null where id = 5")
    block.execute("alter table a alter x set not null")
    block.execute("alter table a add check (x like 'v%')")
    block.execute("savepoint s")
    with refused("23502"):
        block.execute("alter table a alter y set not null")
    block.execute("rollback to s")
    block.execute("delete from a where id = 5")
    block.execute("alter table a alter y set not null")
    block.execute("savepoint s")
    with refused("23514"):
        block.execute("insert into a values (200, 'w', 'own')")
    block.execute("rollback to s")
    other.execute("insert into a values (300, 1, 'other')")
    block.execute("commit")
    with refused("23502"):
        other.execute("insert into a values (301, null, 'other')")
    assert inspect(block.node) == []


def test_null_of_another_session_fails_a_block_that_converts_and_forbids_it(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute(TO_TEXT)
    block.execute("alter table a alter x set not null")
    other.execute("insert into a values (300, null, 'other')")
    with refused("40001"):
        block.execute("commit")
    assert rows(other, "select id, x from a where id = 300") == [(300, None)]
    assert inspect(block.node) == []


def test_later_columns_and_indexes_of_a_converted_table(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("update a set x = 50 where id <= 10")
    block.execute(TO_TEXT)
    block.execute("alter table a add column b int default 3")
    block.execute("update a set b = 4, x = x || 'b' where id <= 5")
    block.execute("create index i on a (b, x)")
    block.execute("alter table a drop column y")
    other.execute("insert into a values (300, 1, 'other')")
    block.execute("create index j on a (x desc) where b = 4")
    assert ids(block, "b = 4 and x = 'v50b'") == [1, 2, 3, 4, 5]
    block.execute("commit")
    assert [column.name for column in other.execute("select * from a").columns or ()] == ["id", "x", "b"]
    assert ids(other, "b = 4 and x = 'v50b'") == [1, 2, 3, 4, 5]
    assert rows(other, "select * from a where id in (6, 300) order by id") == [(6, "v50", 3), (300, "v1", 3)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("first", ["block", "other"])
def test_writers_of_one_row_wait_for_each_other_across_the_change(nodes: tuple[Node, Node], first: str):
    block, other = Session(nodes[0]), Session(nodes[0])
    begin(block)
    block.execute("update a set y = 'before' where id = 4")
    block.execute(TO_TEXT)
    if first == "block":
        block.execute("update a set x = x || '!' where id = 5")
        with sent(other, "update a set y = 'other' where id in (4, 5)") as ended:
            block.execute("commit")
    else:
        begin(other)
        other.execute("update a set y = 'other' where id = 5")
        with sent(block, "update a set x = x || '!' where id = 5") as ended:
            other.execute("commit")
        block.execute("commit")
    assert ended == [""]
    changed = "other" if first == "block" else "before"
    assert rows(other, "select id, x, y from a where id in (4, 5)") == [(4, "v4", changed), (5, "v5!", "other")]
    other.close()
    block.close()
    assert inspect(nodes[0]) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_parent_that_a_block_deletes_gets_no_child_meanwhile(sessions: tuple[Session, Session], bulk: bool):
    block, other = sessions
    other.execute("create table child (id int primary key, a_id int references a)")
    begin(block)
    block.execute(TO_TEXT)
    block.execute("delete from a where id > 2" if bulk else "delete from a where id = 5")
    other.execute("insert into child values (1, 5)")
    with refused("40001"):
        block.execute("commit")
    assert rows(other, "select a_id from child join a on a.id = a_id") == [(5,)]
    assert inspect(block.node) == []


def test_child_of_a_block_does_not_outlive_its_converted_parent(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create table child (id int primary key, a_id int references a)")
    begin(block)
    block.execute(TO_TEXT)
    block.execute("insert into child values (1, 5)")
    other.execute("delete from a where id = 5")
    with refused("40001"):
        block.execute("commit")
    assert rows(other, "select * from child") == []
    assert inspect(block.node) == []


def test_rows_are_rewritten_more_than_once(sessions: tuple[Session, Session], nodes: tuple[Node, Node]):
    block, other = sessions
    late = Session(nodes[1])
    other.execute("create index known on a (x)")
    begin(late)
    late.execute("insert into a values (301, 5, 'late')")
    begin(block)
    block.execute("update a set x = x + 100")
    block.execute("insert into a values (200, 7, 'own')")
    block.execute(TO_TEXT)
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("savepoint s")
    block.execute("alter table a alter y type int using length(y)")
    assert rows(block, "select x, y from a where id in (5, 200, 300)") == [("v105", 2), ("v7", 3), ("v8", 5)]
    block.execute("rollback to s")
    assert rows(block, "select x, y from a where id in (5, 200, 300)") == [
        ("v105", "r5"),
        ("v7", "own"),
        ("v8", "other"),
    ]
    block.execute("alter table a alter y type text using x || y")
    block.execute("alter table a alter x type int using substr(x, 2)::int * 2")
    block.execute("alter table a add n uuid default gen_random_uuid()")
    other.execute("update a set y = 'again' where id = 300")
    block.execute("create index i on a (y)")
    block.execute("update a set y = 'mine' where id = 7")
    wanted = [(5, 210, "v105r5"), (7, 214, "mine"), (200, 14, "v7own"), (300, 16, "v8again")]
    query = "select id, x, y from a where id in (5, 7, 200, 300) order by id"
    assert rows(block, query) == wanted
    assert rows(other, "select x, y from a where id in (5, 300)") == [(5, "r5"), (8, "again")]
    block.execute("commit")
    late.execute("commit")
    for session in sessions:
        assert rows(session, query) == wanted
        assert ids(session, "y = 'v5late' and x = 10") == [301]
        assert rows(session, "select count(distinct n) from a") == [(ROWS + 3,)]
    assert is_at_rest(other)
    late.close()
    assert inspect(block.node) == []


ADDED = [
    ("add n uuid default gen_random_uuid()", "count(n) = count(*) and count(distinct n) = count(*)"),
    ("add n uuid not null default gen_random_uuid()", "count(n) = count(*) and count(distinct n) = count(*)"),
    ("add n int generated always as (x * 2) stored", "bool_and(n = x * 2)"),
    ("add n int not null default (random() * 10)", "bool_and(n between 0 and 10)"),
]


@pytest.mark.parametrize(("sql", "fact"), ADDED)
def test_column_with_a_value_for_each_row_is_added(sessions: tuple[Session, Session], sql: str, fact: str):
    block, other = sessions
    begin(block)
    block.execute("update a set x = 55 where id = 5")
    block.execute("insert into a values (200, 7, 'own')")
    block.execute("insert into a select i, i, 'bulk' from generate_series(1000, 9000) g (i)")
    block.execute("delete from a where id = 4")
    block.execute(f"alter table a {sql}")
    assert rows(block, f"select {fact}, count(*) from a") == [(True, ROWS + 8001)]
    other.execute("update a set x = 66 where id = 6")
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("update a set x = 77 where id in (5, 6, 7)")
    block.execute("update a set y = 'bulk' where id > 10")
    block.execute("insert into a (id, x) values (201, 3)")
    before = rows(block, "select id, n from a order by id")
    assert rows(block, f"select {fact}, count(*) from a") == [(True, ROWS + 8003)]
    block.execute("commit")
    for session in sessions:
        assert rows(session, "select id, n from a order by id") == before
        assert rows(session, f"select {fact}, count(*) from a") == [(True, ROWS + 8003)]
    other.execute("insert into a (id, x) values (202, 3)")
    assert rows(other, f"select {fact} from a") == [(True,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("fault", ["job.raised", "job.built", "job.attached", "block.built"])
def test_killed_conversion_leaves_nothing(place: Place, nodes: tuple[Node, Node], fault: str):
    run_until_killed(place, fault, f"begin; insert into a values (200, 55, 'own'); {TO_TEXT}; commit")
    other = Session(nodes[1])
    wait_until(lambda: is_at_rest(other), "the change to be reverted")
    assert column_type(other) == "integer"
    other.execute(TO_TEXT)
    assert rows(other, "select x from a where id in (5, 200)") == [("v5",)]
    other.close()
    assert inspect(nodes[0]) == []
