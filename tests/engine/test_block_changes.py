"""Schema changes over rows inside a transaction block: visible to others with its COMMIT, or never."""

import threading

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_commits import Drainer, NodeChanges
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId
from tests.engine.blocks import (
    LEVELS,
    ROWS,
    begin,
    ids,
    indexes,
    is_valid,
    jobs,
    published,
    refused,
    rows,
    sent,
)
from tests.support.judge import inspect
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog


def access(session: Session, where: str) -> str:
    return " ".join(line for (line,) in rows(session, f"explain select id from a where {where}"))


@pytest.mark.parametrize("level", LEVELS)
def test_index_is_used_at_once_and_known_to_others_after_commit(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    block.execute("update a set x = 55 where id = 5")
    block.execute("delete from a where id = 6")
    block.execute("insert into a values (200, 55, 'own')")
    block.execute("create index i on a (x)")
    assert ids(block, "x = 55") == [5, 200]
    assert ids(block, "x = 6") == list(range(16, ROWS + 1, 10))
    assert indexes(other) == set()
    # What the others write meanwhile is in the index too.
    other.execute("update a set x = 55 where id = 7")
    other.execute("insert into a values (300, 55, 'other')")
    other.execute("delete from a where id = 8")
    block.execute("insert into a values (201, 55, 'own')")
    block.execute("update a set x = 56 where id = 15")
    is_newest = level == "read committed"
    assert ids(block, "x = 55") == ([5, 7, 200, 201, 300] if is_newest else [5, 200, 201])
    assert ("i by x" in access(block, "x = 55")) == is_newest
    block.execute("commit")
    for session in sessions:
        assert indexes(session) == {"i"}
        assert "i by x" in access(session, "x = 55")
        assert ids(session, "x = 55") == [5, 7, 200, 201, 300]
        assert ids(session, "x = 56") == [15]
        assert ids(session, "x = 8") == list(range(18, ROWS + 1, 10))
    assert jobs(other) == [("succeeded", "")]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_bulk_writes_are_in_the_index(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    block.execute("update a set x = x + 100")
    block.execute("insert into a select i, 999, 'bulk' from generate_series(1000, 9000) g (i)")
    block.execute("create index i on a (x)")
    other.execute("insert into a values (500, 101, 'other')")
    block.execute("update a set x = 7 where id = 1000")
    assert ids(block, "x = 101")[:2] == [1, 11]
    block.execute("commit")
    assert ids(other, "x = 101") == [*range(1, ROWS + 1, 10), 500]
    assert ids(other, "x = 7") == [1000]
    assert rows(other, "select count(*) from a where x = 999") == [(8000,)]
    assert inspect(block.node) == []


def test_rollback_leaves_nothing(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("update a set x = 55 where id = 5")
    block.execute("create index i on a (x)")
    assert published(other) == [("i", "WRITE_ONLY")]
    block.execute("rollback")
    assert published(other) == []
    assert ids(other, "x = 55") == []
    assert [status for status, _ in jobs(other)] == ["canceled"]
    other.execute("create index i on a (x)")
    assert inspect(block.node) == []


def test_lost_connection_leaves_nothing(nodes: tuple[Node, Node]):
    block, other = Session(nodes[0]), Session(nodes[1])
    begin(block)
    block.execute("create index i on a (x)")
    block.close()
    assert published(other) == []
    other.close()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_constraint_is_validated_under_own_rows(sessions: tuple[Session, Session], level: str, bulk: bool):
    block, other = sessions
    other.execute("insert into a select i, -1, 'bad' from generate_series(1000, 8000) g (i)")
    other.execute("update a set x = -2 where id in (3, 4)")
    other.execute("alter table a add constraint c check (x >= 0) not valid")
    begin(block, level)
    with refused("23514"):
        block.execute("alter table a validate constraint c")
    block.execute("rollback")
    begin(block, level)
    block.execute("update a set x = 1 where x = -1" if bulk else "delete from a where id >= 1000")
    block.execute("update a set x = 7 where id = 3")
    block.execute("savepoint s")
    with refused("23514"):
        block.execute("alter table a validate constraint c")
    block.execute("rollback to s")
    block.execute("delete from a where id = 4")
    block.execute("alter table a validate constraint c")
    assert is_valid(block, "c")
    assert not is_valid(other, "c")
    with refused("23514"):
        other.execute("insert into a values (9000, -1, 'bad')")
    other.execute("insert into a values (9001, 1, 'good')")
    block.execute("insert into a values (9002, 1, 'own')")
    block.execute("commit")
    assert is_valid(other, "c")
    assert rows(other, "select count(*) from a where x < 0") == [(0,)]
    assert inspect(block.node) == []


CONSTRAINTS = [
    ("add constraint c check (x >= 0)", "-1", "23514"),
    ("alter x set not null", "null", "23502"),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("sql", "bad", "sqlstate"), CONSTRAINTS)
def test_constraint_is_added_after_rows_are_corrected(
    sessions: tuple[Session, Session], sql: str, bad: str, sqlstate: str, level: str
):
    block, other = sessions
    other.execute(f"update a set x = {bad} where id in (3, 4)")
    begin(block, level)
    block.execute("update a set x = 1 where id = 3")
    block.execute("savepoint s")
    with refused(sqlstate):
        block.execute(f"alter table a {sql}")
    block.execute("rollback to s")
    block.execute("delete from a where id = 4")
    block.execute(f"alter table a {sql}")
    block.execute("savepoint s")
    with refused(sqlstate):
        block.execute(f"insert into a values (200, {bad}, 'own')")
    block.execute("rollback to s")
    other.execute("insert into a values (300, 1, 'other')")
    block.execute("commit")
    for session in sessions:
        with refused(sqlstate):
            session.execute(f"insert into a values (201, {bad}, 'late')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("sql", "bad", "sqlstate"), CONSTRAINTS)
def test_violation_by_another_session_is_not_refused_and_fails_the_block(
    sessions: tuple[Session, Session], sql: str, bad: str, sqlstate: str, level: str
):
    block, other = sessions
    begin(block, level)
    block.execute("insert into a values (200, 1, 'own')")
    block.execute(f"alter table a {sql}")
    other.execute(f"insert into a values (300, {bad}, 'other')")
    with pytest.raises(errors.SerializationFailure) as caught:
        block.execute("commit")
    assert "violated by a row of a concurrent transaction" in str(caught.value)
    assert f"the row is (300, {bad}, other)" in str(caught.value)
    assert rows(other, "select id from a where id >= 200") == [(300,)]
    # A writer that has planned before the COMMIT is checked after it.
    other.execute("delete from a where id = 300")
    begin(block, level)
    block.execute(f"alter table a {sql}")
    begin(other)
    other.execute(f"insert into a values (301, {bad}, 'other')")
    block.execute("commit")
    with refused(sqlstate):
        other.execute("commit")
    assert inspect(block.node) == []


@pytest.mark.parametrize(("sql", "bad", "sqlstate"), CONSTRAINTS)
def test_violation_by_a_bulk_write_names_a_row(sessions: tuple[Session, Session], sql: str, bad: str, sqlstate: str):
    block, other = sessions
    begin(block)
    block.execute(f"alter table a {sql}")
    other.execute(f"insert into a select i, {bad}, 'other' from generate_series(1000, 3000) i")
    with pytest.raises(errors.SerializationFailure, match=rf"the row is \(\d+, {bad}, other\)"):
        block.execute("commit")


def test_everyday_migration_in_one_block(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("alter table a add column b int")
    block.execute("update a set b = id * 2")
    block.execute("alter table a alter b set not null")
    block.execute("alter table a add constraint positive check (b > 0)")
    block.execute("create index i on a (b)")
    block.execute("alter table a drop column x")
    assert ids(block, "b = 14") == [7]
    other.execute("update a set y = 'other' where id = 300")
    block.execute("commit")
    assert [column.name for column in other.execute("select * from a").columns or ()] == ["id", "y", "b"]
    assert ids(other, "b = 14") == [7]
    with refused("23502"):
        other.execute("insert into a (id) values (300)")
    assert inspect(block.node) == []


def test_foreign_key_is_validated_under_own_rows_of_both_tables(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create table child (id int primary key, a_id int)")
    other.execute("insert into child values (1, 1), (2, 500), (3, 501)")
    other.execute("alter table child add constraint f foreign key (a_id) references a not valid")
    begin(block)
    block.execute("delete from child where a_id = 500")
    block.execute("savepoint s")
    with refused("23503"):
        block.execute("alter table child validate constraint f")
    block.execute("rollback to s")
    block.execute("insert into a values (501, 1, 'parent')")
    block.execute("alter table child validate constraint f")
    other.execute("insert into child values (5, 5)")
    block.execute("commit")
    assert is_valid(other, "f")
    with refused("23503"):
        other.execute("delete from a where id = 501")
    assert inspect(block.node) == []


def test_snapshot_of_a_block_that_begins_with_a_change_is_taken_after_it(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block, "repeatable read")
    block.execute("create index i on a (x)")
    assert "i by x" in access(block, "x = 1")
    other.execute("insert into a values (300, 1, 'other')")
    assert len(ids(block, "x = 1")) == 10
    block.execute("commit")


def test_failed_statement_leaves_nothing_of_itself(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    block.execute("savepoint s")
    with pytest.raises(errors.DataError):
        block.execute("create index j on a (cast(y as int))")
    assert published(other) == [("i", "WRITE_ONLY")]
    block.execute("rollback to s")
    block.execute("insert into a values (200, 55, 'own')")
    assert ids(block, "x = 55") == [200]
    block.execute("commit")
    assert published(other) == [("i", "PUBLIC")]
    assert ids(other, "x = 55") == [200]
    assert inspect(block.node) == []


def test_failed_statement_without_savepoint_leaves_nothing_of_the_block(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    with pytest.raises(errors.DataError):
        block.execute("create index j on a (cast(y as int))")
    assert published(other) == []
    block.execute("rollback")


@pytest.mark.parametrize("level", LEVELS)
def test_savepoints_undo_indexes(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    block.execute("alter table a add column b int default 3")
    block.execute("update a set b = id % 4, x = 77 where id <= 8")
    block.execute("create index i on a (b)")
    block.execute("savepoint s")
    block.execute("create index j on a (x)")
    block.execute("drop index i")
    block.execute("update a set b = 50, x = 50 where id = 1")
    assert indexes(block) == {"j"}
    block.execute("rollback to s")
    assert indexes(block) == {"i"}
    assert published(other) == [("i", "WRITE_ONLY")]
    block.execute("create index k on a (x, b)")
    other.execute("insert into a values (300, 77, 'other')")
    block.execute("commit")
    assert indexes(other) == {"i", "k"}
    assert ids(other, "b = 2") == [2, 6]
    assert ids(other, "x = 77") == [*range(1, 9), 300]
    assert ids(other, "b = 3 and id > 99") == [100, 300]
    assert inspect(block.node) == []


def test_index_on_columns_that_the_block_has_added(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("alter table a add column b int default 3")
    block.execute("alter table a add column c text")
    block.execute("update a set b = 4, c = 'c' || id where id <= 10")
    block.execute("insert into a select i, 1, 'bulk', 5, 'b' from generate_series(1000, 9000) g (i)")
    block.execute("create index i on a (b, c)")
    # The others know neither column, and write rows without them.
    other.execute("insert into a values (300, 1, 'other')")
    other.execute("update a set x = 12 where id = 50")
    block.execute("alter table a rename column c to d")
    block.execute("alter table a drop column y")
    block.execute("create index j on a (d)")
    assert ids(block, "d = 'c7'") == [7]
    block.execute("commit")
    assert [column.name for column in other.execute("select * from a").columns or ()] == ["id", "x", "b", "d"]
    assert ids(other, "b = 3 and id >= 98") == [98, 99, 100, 300]
    assert ids(other, "d = 'c7'") == [7]
    assert rows(other, "select count(*) from a where b = 5 and d = 'b'") == [(8001,)]
    assert rows(other, "select x, b, d from a where id = 50") == [(12, 3, None)]
    assert inspect(block.node) == []


def test_partial_index_on_an_expression(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("update a set y = 'Upper' where id = 4")
    block.execute("create index i on a (upper(y)) where x > 3")
    other.execute("update a set y = 'upper' where id = 14")
    assert ids(block, "upper(y) = 'UPPER' and x > 3") == [4, 14]
    block.execute("rollback")
    begin(block)
    block.execute("create index i on a (upper(y)) where x > 3")
    block.execute("update a set y = 'Upper' where id = 4")
    block.execute("commit")
    assert "i by" in access(other, "upper(y) = 'UPPER' and x > 3")
    assert ids(other, "upper(y) = 'UPPER' and x > 3") == [4, 14]
    assert inspect(block.node) == []


def test_own_index_dropped_again_is_never_public(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    block.execute("drop index i")
    block.execute("create index i on a (y)")
    block.execute("insert into a values (200, 55, 'own')")
    assert published(other) == [("i", "WRITE_ONLY"), ("i", "WRITE_ONLY")]
    block.execute("commit")
    assert published(other) == [("i", "PUBLIC")]
    assert ids(other, "y = 'own'") == [200]
    assert inspect(block.node) == []


def test_indexes_of_several_tables(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create table b (id int primary key, a_id int)")
    other.execute(f"insert into b select i, i from generate_series(1, {ROWS}) g (i)")
    begin(block)
    block.execute("create index i on a (x)")
    block.execute("alter table b rename to c")
    block.execute("create index j on c (a_id)")
    block.execute("insert into c values (500, 500)")
    other.execute("insert into b values (600, 500)")
    assert rows(block, "select id from c where a_id = 500 order by id") == [(500,), (600,)]
    block.execute("commit")
    assert rows(other, "select id from c where a_id = 500 order by id") == [(500,), (600,)]
    assert [status for status, _ in jobs(other)] == ["succeeded", "succeeded"]
    assert inspect(block.node) == []


def test_statements_of_one_text_are_one_transaction(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("create index i on a (x); create index j on a (y); insert into a values (200, 55, 'own')")
    assert indexes(other) == {"i", "j"}
    with pytest.raises(errors.UniqueViolation):
        block.execute("drop index i; create index k on a (x, y); insert into a values (200, 55, 'own')")
    assert indexes(other) == {"i", "j"}
    assert published(other) == [("i", "PUBLIC"), ("j", "PUBLIC")]


def test_own_transaction_is_not_waited_for(sessions: tuple[Session, Session]):
    block, _ = sessions
    block.execute("set seachange.drain_timeout = '500ms'")
    begin(block)
    block.execute("update a set x = 55 where id = 5")
    block.execute("create index i on a (x)")
    block.execute("commit")
    # The heartbeat of the other node may be late.
    waits = [event for (event,) in rows(block, "select event from seachange.events") if " session " in event]
    assert waits == []


def test_others_wait_for_the_end_of_the_block(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    other.execute("set lock_timeout = '100ms'")
    for sql in ("create index i on a (y)", "drop table a", "alter table a add column b int"):
        with pytest.raises(errors.LockNotAvailable):
            other.execute(sql)
    other.execute("set lock_timeout = 0")
    block.execute("commit")
    other.execute("drop table a")


def test_column_whose_not_null_is_uncommitted_is_dropped_after_the_block(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("alter table a alter column x set not null")
    with sent(other, "alter table a drop column x") as ended:
        block.execute("commit")
    assert ended == [""]


def test_cycle_through_the_change_of_a_block_is_a_deadlock(sessions: tuple[Session, Session]):
    """The block waits for a row of the session that waits for the end of its change."""
    block, other = sessions
    other.execute("create table b (id int primary key, n int)")
    other.execute("insert into b values (1, 1)")
    begin(block)
    block.execute("create index i on a (x)")
    begin(other)
    other.execute("select * from b where id = 1 for update")
    with sent(block, "select * from b where id = 1 for update") as ended:
        with pytest.raises(errors.DeadlockDetected):
            other.execute("alter table a add column m int")
        other.execute("rollback")
    assert ended == [""]
    block.execute("commit")
    assert "i" in indexes(other)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_second_block_waits_and_goes_on(nodes: tuple[Node, Node], end: str, level: str):
    block, other = Session(nodes[0]), Session(nodes[1])
    begin(block)
    block.execute("alter table a add column m int default 7")
    begin(other, level)
    other.execute("update a set x = 33 where id = 3")
    with sent(other, "create index j on a (y)") as ended:
        block.execute("create index i on a (x)")
        block.execute("insert into a values (200, 55, 'own')")
        block.execute(end)
    assert ended == [""]
    is_committed = end == "commit"
    # One snapshot is kept: the rows of then, in the newest shape.
    assert len(ids(other, "true")) == ROWS + (is_committed and level == "read committed")
    assert len(other.execute("select * from a").columns or ()) == 3 + is_committed
    assert ids(other, "x = 33") == [3]
    assert rows(other, "select x, y from a where id = 3") == [(33, "r3")]
    other.execute("insert into a (id, x) values (400, 33)")
    other.execute("commit")
    assert indexes(block) == ({"i", "j"} if is_committed else {"j"})
    assert ids(block, "x = 33") == [3, 400]
    assert ids(block, "x = 55") == ([200] if is_committed else [])
    assert inspect(nodes[0]) == []
    other.close()
    block.close()


@pytest.mark.parametrize("level", LEVELS)
def test_block_waits_for_a_running_job_and_goes_on(nodes: tuple[Node, Node], level: str):
    block, other = Session(nodes[0]), Session(nodes[1])
    begin(block, level)
    assert len(ids(block, "x = 1")) == 10
    nodes[1].jobs.paused = True
    other.execute("alter table concurrently a add check (x >= 0)")
    ((job_id,),) = rows(other, "select id from seachange.jobs")

    def release() -> None:
        wait_until(lambda: block.notices, "a notice")
        nodes[1].jobs.paused = False

    thread = threading.Thread(target=release)
    thread.start()
    block.execute("create index i on a (x)")
    thread.join()
    assert f"waits for job {job_id}" in block.notices[0]
    block.execute("insert into a values (200, 1, 'own')")
    assert len(ids(block, "x = 1")) == 11
    block.execute("commit")
    assert indexes(other) == {"i"}
    assert len(ids(other, "x = 1")) == 11
    assert inspect(nodes[0]) == []
    other.close()
    block.close()


def test_snapshot_below_another_primary_index_is_refused_first(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block, "repeatable read")
    assert len(ids(block, "x = 1")) == 10
    other.execute("alter table a alter x type text using x::text")
    with pytest.raises(errors.SerializationFailure):
        block.execute("create index i on a (x)")
    assert published(other) == []
    assert [status for status, _ in jobs(other)] == ["succeeded"]


def test_job_of_a_block_can_be_cancelled(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("insert into a values (200, 55, 'own')")
    block.execute("create index i on a (x)")
    ((job_id, session),) = rows(other, "select id, session from seachange.jobs")
    assert session == f"session {block.client.actor}"
    with pytest.raises(errors.NotInPrerequisiteState):
        other.execute(f"pause job {job_id}")
    other.execute(f"cancel job {job_id}")
    with pytest.raises(errors.SerializationFailure):
        block.execute("commit")
    assert published(other) == []
    assert [status for status, _ in jobs(other)] == ["canceled"]
    assert ids(other, "x = 55") == []


def test_cancelled_job_of_an_idle_block_is_reverted(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    ((job_id,),) = rows(other, "select id from seachange.jobs")
    other.execute(f"cancel job {job_id}")
    wait_until(lambda: published(other) == [], "the index to go")
    with pytest.raises(errors.SerializationFailure):
        block.execute("commit")
    assert published(other) == []


def test_block_of_a_closed_node_is_reverted_by_another(place: Place, nodes: tuple[Node, Node]):
    third = open_node(place.data, place.catalog, name="third")
    block, other = Session(third), Session(nodes[1])
    begin(block)
    block.execute("create index i on a (x)")
    third.close()
    other.execute("create index i on a (y)")
    assert published(other) == [("i", "PUBLIC")]
    assert jobs(other)[0][0] == "canceled"
    assert inspect(nodes[1]) == []
    other.close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize(
    "add",
    [
        "alter table a add constraint k check (x < 50) not valid",
        "alter table a add constraint k foreign key (x) references parents not valid",
    ],
)
def test_constraint_that_is_not_valid_is_unknown_to_others_before_commit(
    sessions: tuple[Session, Session], add: str, end: str
):
    block, other = sessions
    other.execute("create table parents (id int primary key)")
    other.execute("insert into parents select i from generate_series(0, 9) g (i)")
    begin(block)
    block.execute(add)
    # Publishes the changes before it, as hidden ones.
    block.execute("create index i on a (x)")
    other.execute("insert into a values (500, 55, 'other')")
    assert rows(other, "select conname from pg_constraint where conname = 'k'") == []
    block.execute("savepoint s")
    with pytest.raises(errors.IntegrityError):
        block.execute("insert into a values (501, 55, 'own')")
    block.execute("rollback to s")
    # Rows of others since then were not checked by it.
    with pytest.raises(errors.IntegrityError):
        block.execute("alter table a validate constraint k")
    block.execute("rollback to s")
    block.execute(end)
    is_there = end == "commit"
    assert (
        rows(other, "select conname, convalidated from pg_constraint where conname = 'k'") == [("k", False)] * is_there
    )
    if is_there:
        with pytest.raises(errors.IntegrityError):
            other.execute("insert into a values (502, 55, 'other')")
    else:
        other.execute("insert into a values (502, 55, 'other')")
    assert inspect(block.node) == []


def test_drain_of_a_block_does_not_wait_for_the_block(nodes: tuple[Node, Node], sessions: tuple[Session, Session]):
    node, (block, _) = nodes[0], sessions
    block.execute("begin")
    block.execute("update a set x = 5 where id = 1")
    beside = Session(node)
    beside.execute("update a set x = 5 where id = 2")
    beside.close()

    def waits(drainer: Drainer) -> bool:
        holders = NodeChanges(node.parts, node.epoch, drainer).holders(node.epoch.applied)
        return node.epoch.epoch in {holder.epoch for holder in holders}

    assert waits(Drainer())
    assert not waits(Drainer(JobId(1), block.client.actor))
    block.execute("rollback")
    assert not waits(Drainer())


EMPTY_CHANGES = [
    "create index on e (x)",
    "create unique index on e (x)",
    "alter table e add check (x > 0)",
    "alter table e alter x set not null",
    "alter table e alter x type text using x::text",
    "alter table e add foreign key (x) references a",
]


@pytest.mark.parametrize("change", EMPTY_CHANGES)
def test_rows_inserted_meanwhile_do_not_fail_a_change_of_an_empty_table(
    sessions: tuple[Session, Session], change: str
) -> None:
    """The table was committed before, so that other sessions may fill it at any time."""
    block, other = sessions
    block.execute("create table e (id int primary key, x int)")
    for text in ("begin", "insert into e values (1, 1)", "delete from e", change):
        block.execute(text)
    other.execute("insert into e values (2, 2)")
    block.execute("insert into e values (3, 3)")
    block.execute("commit")
    assert rows(other, "select id, x::text from e order by id") == [(2, "2"), (3, "3")]
    assert inspect(block.node) == []


def test_session_that_waits_learns_which_block_holds_the_table(sessions: tuple[Session, Session]) -> None:
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    other.execute("set lock_timeout = '1ms'")
    with pytest.raises(errors.LockNotAvailable) as caught:
        other.execute("alter table a add column z int")
    ((job_id,),) = rows(block, "select id from seachange.jobs")
    holder = f"job {job_id} (create index i on a (x)) of the transaction block of {block.client.name}, node here"
    assert str(caught.value).endswith(f"behind {holder}")
    assert f"waits for {holder}" in other.notices[0]
    block.execute("rollback")


DROPPED = {
    "check": ("add constraint k check (x < 1000)", "drop constraint k", "insert into a values (900, 5000, 'bad')"),
    "not null": ("alter x set not null", "alter x drop not null", "insert into a values (900, null, 'bad')"),
    "not null of a column": ("alter x set not null", "drop x", "insert into a values (900, null, 'bad')"),
    "unique": ("add constraint k unique (y)", "drop constraint k", "insert into a values (900, 1, 'r7')"),
    "foreign key": (
        "add constraint k foreign key (x) references a",
        "drop constraint k",
        "insert into a values (900, 5000, 'bad')",
    ),
    "conversion": ("alter y type int using substr(y, 2)::int", "drop y", "insert into a values (900, 1, 'bad')"),
}


@pytest.mark.parametrize("dropped", DROPPED)
def test_what_is_added_and_dropped_again_is_not_violated(sessions: tuple[Session, Session], dropped: str):
    block, other = sessions
    add, drop, bad = DROPPED[dropped]
    block.execute("update a set x = 1 where x = 0")
    begin(block)
    block.execute(f"alter table a {add}")
    other.execute(bad)
    block.execute("savepoint s")
    block.execute(f"alter table a {drop}")
    block.execute("rollback to s")
    with refused("40001"):
        block.execute("commit")
    other.execute("delete from a where id = 900")
    begin(block)
    block.execute(f"alter table a {add}")
    other.execute(bad)
    block.execute(f"alter table a {drop}")
    block.execute("commit")
    assert ids(other, "id >= 900") == [900]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("change", ["add z int", "alter x type text", "alter id type bigint using id + 0"])
def test_rows_written_before_a_change_stay_locked_for_other_nodes(
    sessions: tuple[Session, Session], change: str, level: str
):
    block, other = sessions
    begin(block, level)
    block.execute("update a set y = 'own' where id = 5")
    block.execute(f"alter table a {change}")
    other.execute("set lock_timeout = '100ms'")
    with refused("55P03"):
        other.execute("update a set y = 'other' where id = 5")
    other.execute("update a set y = 'other' where id = 6")
    block.execute("commit")
    assert rows(other, "select y from a where id in (5, 6) order by id") == [("own",), ("other",)]
    assert inspect(block.node) == []
