"""ROLLBACK TO SAVEPOINT releases what was locked since, inside a node and between nodes, on both catalogs."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.support.nodes import Place, open_ported_node


@pytest.fixture(params=["one node", "two nodes"])
def sessions(request: pytest.FixtureRequest, place: Place) -> Iterator[tuple[Session, Session]]:
    with closing(open_ported_node(place, "one")) as one, closing(open_ported_node(place, "two")) as two:
        first = Session(one)
        first.execute("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)")
        yield first, Session(one if request.param == "one node" else two)


def is_free(session: Session, statement: str) -> bool:
    session.execute("begin")
    try:
        session.execute(statement)
    except errors.LockNotAvailable:
        return False
    finally:
        session.execute("rollback")
    return True


def can_lock(session: Session, id_: int, strength: str = "update") -> bool:
    return is_free(session, f"select * from t where id = {id_} for {strength} nowait")


def test_rows_locked_since_are_released_and_those_before_are_kept(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute(
        "begin; select * from t where id = 1 for update; savepoint a; select * from t where id = 2 for update"
    )
    assert not can_lock(other, 1)
    assert not can_lock(other, 2)
    holder.execute("rollback to a")
    assert not can_lock(other, 1)
    assert can_lock(other, 2)
    # What another changed since is no conflict any more.
    other.execute("update t set n = 20 where id = 2")
    holder.execute("update t set n = 10 where id = 1; commit")
    assert other.execute("select n from t order by id").rows == [(10,), (20,)]


def test_a_stronger_lock_goes_back_to_what_it_was(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; select * from t where id = 1 for key share; savepoint a")
    holder.execute("select * from t where id = 1 for update")
    assert not can_lock(other, 1, "no key update")
    holder.execute("rollback to a")
    assert can_lock(other, 1, "no key update")
    assert not can_lock(other, 1, "update")
    holder.execute("rollback")
    assert can_lock(other, 1, "update")


def test_nested_savepoints(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; savepoint a; select * from t where id = 1 for update; savepoint b")
    holder.execute("select * from t where id = 2 for update; release b")
    assert not can_lock(other, 2)
    # Twice: what was locked after going back once is released as well.
    for _ in range(2):
        holder.execute("rollback to a")
        assert can_lock(other, 1)
        assert can_lock(other, 2)
        holder.execute("select * from t where id = 1 for update")
        assert not can_lock(other, 1)
    holder.execute("commit")
    assert can_lock(other, 1)


def test_advisory_locks_of_the_transaction(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; savepoint a; select pg_advisory_xact_lock(7); select pg_advisory_lock(8); rollback to a")
    assert other.execute("select pg_try_advisory_lock(7), pg_try_advisory_lock(8)").rows == [(True, False)]
    holder.execute("rollback; select pg_advisory_unlock_all()")


def test_rows_written_since_are_free_for_others_of_the_node(place: Place):
    """Writers lock inside their node alone."""
    with closing(open_ported_node(place, "one")) as node:
        holder, other = Session(node), Session(node)
        holder.execute("create table t (id int primary key, n int); insert into t values (1, 1)")
        holder.execute("begin; savepoint a; update t set n = 2; insert into t values (3, 3)")
        other.execute("set lock_timeout = '1ms'")
        with pytest.raises(errors.LockNotAvailable):
            other.execute("update t set n = 5 where id = 1")
        holder.execute("rollback to a")
        other.execute("update t set n = 5 where id = 1; insert into t values (3, 4)")
        holder.execute("commit")
        assert other.execute("select n from t order by id").rows == [(5,), (4,)]


def test_a_definition_that_was_changed_since_is_free(sessions: tuple[Session, Session]):
    holder, other = sessions
    holder.execute("begin; savepoint a; alter table t add column more int")
    assert not is_free(other, "set lock_timeout = '1ms'; alter table t add column other int")
    holder.execute("rollback to a; insert into t values (3, 3)")
    other.execute("alter table t rename column n to m")
    # Locked again when it is changed again.
    holder.execute("commit; begin; savepoint a; create table u (id int); rollback to a; create table u (id int)")
    assert not is_free(other, "set lock_timeout = '1ms'; create table u (id int)")
    holder.execute("commit")
    assert other.execute("select count(*) from t").rows == [(3,)]


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Session, Session]]:
    """Sessions of two nodes, of which the first knows that the other writes to its table."""
    with closing(open_ported_node(place, "one")) as one, closing(open_ported_node(place, "two")) as two:
        first, other = Session(one), Session(two)
        first.execute("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)")
        other.execute("set seachange.drain_timeout = '1ms'; update t set n = 3 where id = 2")
        first.execute("select n from t")
        yield first, other
        assert check(one) == []


def overtake_before_savepoint(block: Session, other: Session) -> None:
    block.execute("begin; update t set n = n + 10 where id = 1; savepoint s")
    # With the index, the change would take more entries in the buffer than it did.
    other.execute("create index on t (n); update t set n = n + 100 where id = 1")
    block.execute("select n from t where id = 2")


def test_a_block_that_was_overtaken_before_a_savepoint_loses_no_row_when_it_is_rolled_back_to(
    nodes: tuple[Session, Session],
) -> None:
    block, other = nodes
    overtake_before_savepoint(block, other)
    block.execute("rollback to s")
    with pytest.raises(errors.SerializationFailure):
        block.execute("commit")
    assert other.execute("select * from t order by id").rows == [(1, 101), (2, 3)]


def test_a_block_that_was_overtaken_before_a_savepoint_goes_back_at_commit(nodes: tuple[Session, Session]) -> None:
    block, other = nodes
    overtake_before_savepoint(block, other)
    block.execute("commit")
    assert other.execute("select * from t order by id").rows == [(1, 111), (2, 3)]


def test_a_block_that_was_overtaken_goes_back_to_a_savepoint_at_most(nodes: tuple[Session, Session]) -> None:
    block, other = nodes
    block.execute("begin; update t set n = n + 10 where id = 2; savepoint s; update t set n = n + 10 where id = 1")
    other.execute("create index on t (n); update t set n = n + 100 where id = 1")
    assert block.execute("select n from t where id = 1").rows == [(111,)]
    block.execute("rollback to s; commit")
    assert block.execute("select * from t order by id").rows == [(1, 101), (2, 13)]
