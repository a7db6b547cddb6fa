"""LOCK TABLE: who waits for whom, inside a node and between nodes, and what the holder sees."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.locks.lock_details import name_party
from seachange.engine.locks.lock_graph import Party
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.engine.session.session import Session
from seachange.model.locking import CONFLICTS, NO_GUARD, LockOwner, LockWish, TableLock
from seachange.runtime.faults import FAULTS
from seachange.storage.keys import table_hash
from tests.engine.database import open_quiet
from tests.engine.ports import open_hooked
from tests.support.patience import PATIENCE_S

WRITE = "insert into t values (10, 10)"


@pytest.fixture(params=["one node", "two nodes"])
def sessions(request: pytest.FixtureRequest, node: Node) -> tuple[Session, Session]:
    """Two of one node, or of two."""
    first = Session(node)
    first.execute("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)")
    return first, Session(node if request.param == "one node" else request.getfixturevalue("other"))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def is_waiting(*sessions: Session) -> bool:
    """Whether one of them waits in the queue of the catalog."""
    catalog = sessions[0].node.parts.catalog
    here = {(session.node.epoch.epoch, session.client.actor) for session in sessions}
    return any((wait.epoch, wait.actor) in here for wait in catalog.lock_queues().waits)


def until(fact: Callable[[], bool], waiting: Future[object] | None = None) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE_S * 200)):
        if fact() or (waiting is not None and waiting.done()):
            return
        pause.wait(0.005)
    raise AssertionError("it did not come to that")


def start(pool: ThreadPoolExecutor, session: Session, statement: str) -> Future[object]:
    """Runs it in a thread, and returns when it waits for a lock."""
    future: Future[object] = pool.submit(session.execute, statement)
    until(lambda: is_waiting(session) or session.node.epoch.locks.waiting > 0, future)
    assert not future.done() or future.exception() is not None, f"{statement} did not wait"
    return future


def test_outside_of_a_block_it_is_refused(node: Node):
    session = Session(node)
    session.execute("create table t (id int primary key)")
    with pytest.raises(errors.NoActiveTransaction) as caught:
        session.execute("lock table t")
    assert str(caught.value) == "LOCK TABLE can only be used in transaction blocks"
    # A text of several statements is a block.
    session.execute("lock table t; select 1")
    assert not session.node.parts.catalog.table_locks().held


@pytest.mark.parametrize("mode", TableLock)
def test_ordinary_statements_wait_as_postgresql_has_it(sessions: tuple[Session, Session], mode: TableLock):
    locker, other = sessions
    locker.execute(f"begin; lock table t in {mode.sql_name} mode")
    other.execute("set lock_timeout = '1ms'")
    taken = {
        "select * from t": TableLock.ACCESS_SHARE,
        "select * from t where id = 1 for key share": TableLock.ROW_SHARE,
        "insert into t values (9, 9)": TableLock.ROW_EXCLUSIVE,
        "update t set n = 0 where id = 1": TableLock.ROW_EXCLUSIVE,
        "delete from t where id = 2": TableLock.ROW_EXCLUSIVE,
    }
    for statement, needed in taken.items():
        other.execute("begin")
        if needed in CONFLICTS[mode]:
            with pytest.raises(errors.LockNotAvailable):
                other.execute(statement)
        else:
            other.execute(statement)
        other.execute("rollback")
    locker.execute("commit")
    for statement in taken:
        other.execute(statement)


def test_it_waits_for_open_writers_and_sees_their_rows(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    writer, locker = sessions
    writer.execute(f"begin; {WRITE}")
    locker.execute("begin")
    locking = start(pool, locker, "lock table t in share mode")
    writer.execute("insert into t values (11, 11); commit")
    locking.result(PATIENCE_S)
    assert locker.execute("select count(*) from t").rows == [(4,)]
    writing = start(pool, writer, "insert into t values (12, 12)")
    assert locker.execute("select count(*) from t").rows == [(4,)]
    locker.execute("insert into t values (13, 13); commit")
    writing.result(PATIENCE_S)
    assert locker.execute("select count(*) from t").rows == [(6,)]


def test_it_waits_for_readers_only_in_access_exclusive_mode(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
):
    reader, locker = sessions
    reader.execute("begin; select * from t")
    locker.execute("begin; lock table t in exclusive mode; commit; begin")
    locking = start(pool, locker, "lock table t")
    reader.execute("commit")
    locking.result(PATIENCE_S)
    reading = start(pool, reader, "select max(id) from t")
    locker.execute("insert into t values (20, 20); commit")
    assert reading.result(PATIENCE_S).rows == [(20,)]  # type: ignore[attr-defined]


def test_an_update_that_waited_sees_what_the_holder_wrote(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    locker, other = sessions
    locker.execute("begin; lock table t in share row exclusive mode; insert into t values (3, 3)")
    updating = start(pool, other, "update t set n = n + 100 where n > 1")
    locker.execute("commit")
    updating.result(PATIENCE_S)
    assert other.execute("select id from t where n > 100 order by id").rows == [(2,), (3,)]


def test_weak_modes_ask_nothing_of_the_catalog(sessions: tuple[Session, Session]):
    for session in sessions:
        session.execute("begin; lock table t in access share mode; lock t in row share mode nowait")
        session.execute("lock table only t in row exclusive mode; insert into t values (11, 1)")
        assert not session.node.parts.catalog.table_locks().held
        session.execute("rollback")


def test_a_cycle_is_a_deadlock(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    first, second = sessions
    first.execute("create table u (id int primary key)")
    first.execute("begin; lock table t")
    second.execute("begin; lock table u")
    waiting = start(pool, first, "insert into u values (1)")
    with pytest.raises(errors.DeadlockDetected):
        second.execute("lock table t in share mode")
    second.execute("rollback")
    waiting.result(PATIENCE_S)
    first.execute("commit")


def test_two_holders_of_share_that_both_write_are_a_deadlock(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
):
    first, second = sessions
    for session in sessions:
        session.execute("begin; lock table t in share mode")
    waiting = start(pool, first, "insert into t values (5, 5)")
    with pytest.raises(errors.DeadlockDetected):
        second.execute("insert into t values (6, 6)")
    second.execute("rollback")
    waiting.result(PATIENCE_S)
    first.execute("commit")


def test_time_limits_and_nowait(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; lock table t in row share mode; insert into t values (4, 4)")
    for settings, statement, problem in (
        ("set local lock_timeout = '50ms'", "lock table t", errors.LockNotAvailable),
        ("set local statement_timeout = '300ms'", "lock table t", errors.QueryCanceled),
        ("select 1", "lock table t in share mode nowait", errors.LockNotAvailable),
    ):
        other.execute(f"begin; {settings}")
        with pytest.raises(problem):
            other.execute(statement)
        other.execute("rollback")
    assert not is_waiting(other)
    holder.execute("commit")
    other.execute("begin; lock table t in share mode nowait; commit")


def test_rollback_to_a_savepoint_releases_it(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; lock table t in share update exclusive mode; savepoint a; lock table t; savepoint b")
    holder.execute("rollback to b")
    with pytest.raises(errors.LockNotAvailable):
        other.execute("begin; lock table t in row share mode nowait")
    holder.execute("rollback to a; select 1")
    other.execute("rollback; begin; lock table t in row exclusive mode nowait")
    other.execute("rollback; begin")
    with pytest.raises(errors.LockNotAvailable):
        other.execute("lock table t in share mode nowait")
    other.execute("rollback")
    holder.execute("commit")
    other.execute("begin; lock table t nowait; commit")


def test_a_savepoint_that_is_released_keeps_the_lock(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; savepoint a; savepoint b; lock table t; release b")
    with pytest.raises(errors.LockNotAvailable):
        other.execute("begin; lock table t nowait")
    holder.execute("rollback to a")
    other.execute("rollback; begin; lock table t nowait; rollback")


def test_a_write_that_is_rolled_back_to_a_savepoint_is_not_waited_for(sessions: tuple[Session, Session]):
    writer, locker = sessions
    writer.execute(f"begin; savepoint a; {WRITE}")
    with pytest.raises(errors.LockNotAvailable):
        locker.execute("begin; lock table t in share mode nowait")
    writer.execute("rollback to a")
    locker.execute("rollback; begin; lock table t in share mode nowait; rollback")


def test_schema_changes_wait_for_it(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    holder, other = sessions
    holder.execute("begin; lock table t in share update exclusive mode")
    adding = start(pool, other, "alter table t add column more int default 7")
    assert holder.execute("select * from t where id = 1").rows == [(1, 1)]
    holder.execute("commit")
    adding.result(PATIENCE_S)
    assert holder.execute("select more from t where id = 1").rows == [(7,)]


LABELS = ("comment on table t is 'a'", "comment on column t.n is 'b'", "alter table t owner to r")


@pytest.mark.parametrize("statement", ["vacuum t", "vacuum", *LABELS])
def test_vacuum_comment_and_owner_wait_for_it(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor, statement: str
):
    holder, other = sessions
    holder.execute("create role r")
    holder.execute("begin; lock table t in share update exclusive mode")
    waiting = start(pool, other, statement)
    holder.execute("commit")
    waiting.result(PATIENCE_S)


@pytest.mark.parametrize("statement", LABELS)
def test_comment_and_owner_do_not_wait_for_writers_nor_writers_for_them(
    sessions: tuple[Session, Session], statement: str
):
    writer, other = sessions
    writer.execute("create role r")
    writer.execute(f"begin; {WRITE}")
    other.execute(f"set lock_timeout = '{PATIENCE_S}s'; begin; {statement}")
    writer.execute(f"set lock_timeout = '{PATIENCE_S}s'; update t set n = 3 where id = 1; commit")
    other.execute("commit")
    assert other.execute("select count(*) from t").rows == [(3,)]


def test_grant_and_revoke_do_not_wait_for_it(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("create role r")
    holder.execute("begin; lock table t in exclusive mode")
    other.execute(f"set lock_timeout = '{PATIENCE_S}s'; grant select on t to r; revoke select on t from r")


def test_it_waits_for_a_schema_change_in_a_block(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    other, holder = sessions
    other.execute("begin; alter table t rename to old; create table t (id int primary key)")
    holder.execute("begin")
    locking = start(pool, holder, "lock table t in share mode")
    other.execute("commit")
    locking.result(PATIENCE_S)
    # The name is that of the new table, which is the one that is locked.
    with pytest.raises(errors.LockNotAvailable):
        other.execute("begin; lock table t in row exclusive mode nowait")
    other.execute("rollback; begin; lock table old nowait; rollback")
    holder.execute("insert into t values (1); commit")


def test_at_repeatable_read_the_snapshot_is_taken_after_the_lock(
    sessions: tuple[Session, Session], pool: ThreadPoolExecutor
):
    writer, locker = sessions
    writer.execute(f"begin; {WRITE}")
    locker.execute("begin isolation level repeatable read")
    locking = start(pool, locker, "lock table t in share mode")
    writer.execute("commit")
    locking.result(PATIENCE_S)
    assert locker.execute("select count(*) from t").rows == [(3,)]


def test_the_tables_of_a_view_are_locked(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("create view v as select n from t; create view w as select n from v; create sequence s")
    holder.execute("begin; lock w in share mode")
    with pytest.raises(errors.LockNotAvailable):
        other.execute("set lock_timeout = '1ms'; insert into t values (7, 7)")
    with pytest.raises(errors.NotLockable) as caught:
        holder.execute("lock table s")
    assert (caught.value.sqlstate, str(caught.value)) == ("42809", 'cannot lock relation "s"')


def test_tables_of_the_transaction_itself_and_temporary_ones(node: Node):
    session = Session(node)
    session.execute("create temp table p (id int); begin; create table q (id int)")
    session.execute("lock table p, q in access exclusive mode nowait; insert into q values (1); commit")
    with pytest.raises(errors.UndefinedTable):
        session.execute("begin; lock table absent")


def test_a_node_that_comes_later_knows_of_the_lock(node: Node, tmp_path: Path):
    holder = Session(node)
    holder.execute("create table t (id int primary key)")
    holder.execute("begin; lock table t in share mode")
    parts = node.parts
    # Before it has a thread that looks.
    epoch = EpochState(parts.catalog, parts.warehouse, "silent", node.expiry_ms, parts.clock, lambda: None)
    assert epoch.tables.contended
    parts.catalog.end_node(epoch.epoch)
    with closing(open_quiet(tmp_path, "late")) as late:
        with pytest.raises(errors.LockNotAvailable):
            Session(late).execute("set lock_timeout = '1ms'; insert into t values (1)")
        # Without a session there is nothing to wait: the commit is refused.
        by_hand = late.begin()
        by_hand.writes.insert(by_hand.schema.table(None, "t"), [(1,)])
        with pytest.raises(errors.SerializationFailure):
            by_hand.commit()


def test_locks_of_a_dead_node_end_with_its_epoch(node: Node, other: Node):
    dead, session = Session(other), Session(node)
    session.execute("create table t (id int primary key)")
    dead.execute("begin; lock table t")
    other.parts.catalog.end_node(other.epoch.epoch)
    session.execute("begin; lock table t nowait; insert into t values (1); commit")


def test_who_may_lock_a_table(node: Node):
    owner, user = Session(node), Session(node)
    owner.execute("create table t (id int primary key); create view v as select * from t; create role r login")
    granted = {
        "select": TableLock.ACCESS_SHARE,
        "insert": TableLock.ROW_EXCLUSIVE,
        "update": TableLock.ACCESS_EXCLUSIVE,
        "delete": TableLock.ACCESS_EXCLUSIVE,
        "truncate": TableLock.ACCESS_EXCLUSIVE,
    }
    user.execute("set role r")
    for privilege, most in granted.items():
        owner.execute(f"grant {privilege} on t to r")
        for mode in TableLock:
            user.execute("begin")
            if mode <= most:
                user.execute(f"lock table t in {mode.sql_name} mode")
            else:
                with pytest.raises(errors.InsufficientPrivilege):
                    user.execute(f"lock table t in {mode.sql_name} mode")
            user.execute("rollback")
        owner.execute(f"revoke {privilege} on t from r")
    # What a view reads, its owner locks.
    with pytest.raises(errors.InsufficientPrivilege):
        user.execute("begin; lock table v in share mode")
    owner.execute("grant update on v to r")
    user.execute("rollback; begin; lock table v in share mode; rollback")


def test_ordinary_statements_make_no_call_for_table_locks(tmp_path: Path, node: Node):
    """Nor do the weak modes of LOCK TABLE."""
    Session(node).execute("create table t (id int primary key, n int)")
    hooked, catalog = open_hooked(tmp_path)
    with closing(hooked):
        session = Session(hooked)
        asked: list[str] = []
        for method in ("table_locks", "take_locks", "request_lock", "answer_requests", "release_scopes", "lock_queues"):
            catalog.before[method] = partial(_note_call, asked, method)
        session.execute("insert into t values (1, 1); update t set n = 2; select * from t; delete from t")
        session.execute("begin; lock table t in row exclusive mode; insert into t values (2, 2); savepoint a")
        session.execute("update t set n = 3; rollback to a; commit; select * from t where id = 2")
        assert not asked


def _note_call(asked: list[str], method: str) -> None:
    # The node itself looks now and then, in a thread of its own.
    if threading.current_thread() is threading.main_thread():
        asked.append(method)


def test_the_commit_of_a_block_releases_its_locks(tmp_path: Path, node: Node):
    Session(node).execute("create table t (id int primary key, n int)")
    hooked, catalog = open_hooked(tmp_path)
    with closing(hooked):
        session = Session(hooked)
        asked: list[str] = []
        for method in ("take_locks", "release_scopes"):
            catalog.before[method] = partial(_note_call, asked, method)
        session.execute("begin; alter table t add column a int; commit")
        session.execute("begin; select * from t for update; insert into t values (1, 1); commit")
        assert set(asked) == {"take_locks"}
        session.execute("begin; alter table t add column b int; rollback")
        assert asked[-1] == "release_scopes"
    other = Session(node)
    other.execute("set lock_timeout = 1")
    other.execute("begin; lock table t; alter table t drop column a; commit")


def test_a_lock_that_is_written_down_after_the_commit_is_released(node: Node, other: Node):
    session = Session(node)
    session.execute("create table t (id int primary key, n int)")
    (table,) = node.epoch.schema(node.epoch.catch_up()).by_id.values()
    wish = LockWish(table_hash(table.id), TableLock.ACCESS_EXCLUSIVE, NO_GUARD)
    catalog, requester = node.parts.catalog, other.epoch.epoch
    answered: list[int] = []

    def request() -> None:
        catalog.request_lock(requester, LockOwner(1, 1), wish)
        node.epoch.tables.refresh()
        answered.append(len(catalog.lock_holders(wish.key)))

    session.execute("begin; insert into t values (1, 1); alter table t add column a int")
    FAULTS.arm("commit.applied", request)
    try:
        session.execute("commit")
    finally:
        FAULTS.disarm()
    assert answered == [1]
    assert not catalog.lock_holders(wish.key)


def test_pg_locks_shows_them(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    holder, other = sessions
    shown = """select c.relname, l.mode, l.granted, l.fastpath, l.virtualtransaction from pg_locks l
        join pg_class c on c.oid = l.relation where c.relname = 't' order by l.granted desc, l.mode"""
    holder.execute("begin; lock table t in share row exclusive mode")
    writing = start(pool, other, WRITE)
    names = [f"{s.node.epoch.epoch}/{s.client.actor}" for s in sessions]
    assert holder.execute(shown).rows == [
        ("t", "ShareRowExclusiveLock", True, False, names[0]),
        ("t", "RowExclusiveLock", False, False, names[1]),
    ]
    holder.execute("commit")
    writing.result(PATIENCE_S)
    # It has heard that there is no strong lock any more.
    holder.node.epoch.tables.refresh()
    holder.execute("begin; insert into t values (50, 50)")
    assert holder.execute(shown).rows == [("t", "RowExclusiveLock", True, True, names[0])]
    holder.execute("rollback")


def test_errors_name_the_holders(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    holder, other = sessions
    party = Party(holder.node.epoch.epoch, holder.client.actor)
    here, there = (name_party(party, session.node.epoch.epoch) for session in sessions)
    assert here == str(holder.client.actor)
    holder.execute("begin; lock table t; select * from t where id = 1 for update")
    with pytest.raises(errors.LockRefused) as refused:
        other.execute("begin; lock table t in share mode nowait")
    assert str(refused.value) == 'could not obtain lock on relation "t"'
    assert refused.value.detail == f"Process holding the lock: {there}."
    other.execute("rollback; set lock_timeout = '1ms'")
    with pytest.raises(errors.LockTimeout) as late:
        other.execute("select * from t")
    assert str(late.value) == "canceling statement due to lock timeout"
    assert late.value.detail == f"Process holding the lock: {there}."
    holder.execute("rollback; begin; select * from t where id = 1 for update")
    with pytest.raises(errors.LockRefused) as row:
        other.execute("select * from t where id = 1 for update nowait")
    assert str(row.value) == 'could not obtain lock on row in relation "t"'
    assert row.value.detail == f"Process holding the lock: {there}."
    with pytest.raises(errors.LockTimeout) as late:
        other.execute("select * from t where id = 1 for update")
    assert late.value.detail == f"Process holding the lock: {there}."


def test_a_deadlock_says_who_waits_for_whom(sessions: tuple[Session, Session], pool: ThreadPoolExecutor):
    first, second = sessions
    first.execute("create table u (id int primary key)")
    first.execute("begin; lock table t")
    second.execute("begin; lock table u")
    waiting = start(pool, first, "lock table u in share mode")
    with pytest.raises(errors.DeadlockDetected) as caught:
        second.execute("insert into t values (1, 1)")
    epoch = second.node.epoch.epoch
    one, two = (name_party(Party(s.node.epoch.epoch, s.client.actor), epoch) for s in sessions)
    assert str(caught.value) == "deadlock detected"
    assert caught.value.detail == (
        f'Process {two} waits for RowExclusiveLock on relation "t"; blocked by process {one}.\n'
        f'Process {one} waits for ShareLock on relation "u"; blocked by process {two}.'
    )
    second.execute("rollback")
    waiting.result(PATIENCE_S)


def test_a_deadlock_of_rows_says_who_waits_for_whom(node: Node, pool: ThreadPoolExecutor):
    first, second = Session(node), Session(node)
    first.execute("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)")
    first.execute("begin; update t set n = 0 where id = 1")
    second.execute("begin; update t set n = 0 where id = 2")
    waiting: Future[object] = pool.submit(first.execute, "update t set n = 0 where id = 2")
    until(lambda: node.epoch.locks.waiting > 0, waiting)
    with pytest.raises(errors.DeadlockDetected) as caught:
        second.execute("update t set n = 0 where id = 1")
    one, two = first.client.actor, second.client.actor
    assert re.sub("[0-9a-f]{16}", "K", caught.value.detail or "") == (
        f"Process {two} waits for ExclusiveLock on key K; blocked by process {one}.\n"
        f"Process {one} waits for ExclusiveLock on key K; blocked by process {two}."
    )
    second.execute("rollback")
    waiting.result(PATIENCE_S)
