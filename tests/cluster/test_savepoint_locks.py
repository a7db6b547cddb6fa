"""ROLLBACK TO SAVEPOINT releases what was locked since, inside a node and between nodes, on both catalogs."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session
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
