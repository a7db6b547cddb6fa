"""Blocks of different nodes that write the same rows: the second waits or is resumed, as in PostgreSQL, on both
catalogs."""

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import combinations
from typing import Any

import pytest

from seachange import errors
from seachange.engine.buffer.row_locks import claim_key
from seachange.engine.locks.contention import Contention
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.locking import LockPolicy, LockStrength
from tests.cluster.sqlprocess import SqlProcess
from tests.cluster.test_locks import CountingCatalog, Later, LaterInside, finish_blocks, sqlstate
from tests.support.nodes import Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

# More rows than are locked one by one.
MANY = 1_500
PROCESSES = 4
ROUNDS = 12
SEED = 11


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    opened = open_ported_node(place, "one"), open_ported_node(place, "two")
    yield opened
    for node in opened:
        node.close()


@pytest.fixture
def here(nodes: tuple[Node, Node]) -> Iterator[Session]:
    session = Session(nodes[0])
    session.execute("create table t (id int primary key, n int, code text unique)")
    session.execute("insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
    session.execute("create table log (id serial primary key, what text)")
    yield session
    session.close()


@pytest.fixture
def there(nodes: tuple[Node, Node], here: Session) -> Iterator[Session]:
    session = Session(nodes[1])
    forget(here, session)
    yield session
    session.close()


def rows(session: Session, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(text).rows]


def run_all(session: Session, *texts: str) -> None:
    for text in texts:
        session.execute(text)


def forget(*sessions: Session) -> None:
    """The nodes know of no contention: what they would wait for, they meet at COMMIT."""
    for session in sessions:
        session.node.epoch.catch_up()
        session.node.epoch.contention = Contention(session.node.parts.clock)


def contend(*sessions: Session) -> None:
    """Makes row 1 of t known as contended to the nodes."""
    for session in (*sessions, *sessions):
        session.execute("update t set n = n where id = 1")
    assert all(not session.node.epoch.contention.is_quiet for session in sessions)


# The first conflict.


def test_the_first_conflict_on_a_counter_does_not_reach_the_client(here: Session, there: Session):
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "insert into log (what) values ('there')")
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]
    assert rows(here, "select what from log") == [("there",)]


def test_a_client_never_sees_a_value_that_is_not_committed(here: Session, there: Session):
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    there.execute("begin")
    assert rows(there, "update t set n = n + 1 where id = 1 returning n") == [(11,)]
    here.execute("commit")
    assert sqlstate(there, "commit") == "40001"
    assert rows(there, "select n from t where id = 1") == [(11,)]


def test_a_query_of_the_rows_that_are_written_again_must_give_the_same(here: Session, there: Session):
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "select n from t where id = 1")
    here.execute("commit")
    assert sqlstate(there, "commit") == "40001"


def test_queries_of_tables_that_stay_as_they_are_stand(here: Session, there: Session):
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "select n from t where id = 1", "update t set n = n + 1 where id = 1")
    assert rows(there, "select count(*) from log") == [(0,)]
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]


def test_queries_that_still_give_the_same_rows_stand_too(here: Session, there: Session):
    """In whatever order they come, if the query asks for none."""
    here.execute("insert into log (what) values ('first'), ('second')")
    forget(here, there)
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "insert into log (what) values ('there')")
    assert len(rows(there, "select what from log where what <> 'here'")) == 3
    run_all(here, "begin", "update t set n = n + 1 where id = 1", "update log set what = 'first' where what = 'first'")
    run_all(here, "insert into log (what) values ('here')", "commit")
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]
    assert rows(here, "select count(*) from log") == [(4,)]


def test_an_order_that_was_asked_for_must_stay(here: Session, there: Session):
    run_all(there, "begin", "update t set n = n + 1 where id = 1")
    assert rows(there, "select id from t where id > 1 order by n") == [(2,), (3,)]
    run_all(here, "begin", "update t set n = n + 1 where id = 1", "update t set n = 50 - n where id > 1", "commit")
    assert sqlstate(there, "commit") == "40001"


def test_a_row_that_programs_update_first_is_a_mutex(here: Session, there: Session):
    """In PostgreSQL the second waits, and then counts what the first has inserted."""
    for session in (here, there):
        session.execute("begin")
        session.execute("update t set n = n + 1 where id = 1")
        if rows(session, "select count(*) from log") == [(0,)]:
            session.execute("insert into log (what) values ('the only one')")
    here.execute("commit")
    assert sqlstate(there, "commit") == "40001"
    assert rows(there, "select count(*) from log") == [(1,)]


def test_statements_are_not_run_again_with_other_settings(here: Session, there: Session):
    """Else the row of another table of the same name would change."""
    run_all(here, "create schema other", "create table other.t (id int primary key, n int)")
    run_all(here, "insert into other.t values (1, 100)", "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "select set_config('search_path', 'other', true)")
    here.execute("commit")
    assert sqlstate(there, "commit") == "40001"
    assert rows(here, "select n from other.t") == [(100,)]


def test_calls_of_sequence_functions_give_what_they_gave(here: Session, there: Session):
    here.execute("create sequence s")
    forget(here, there)
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "insert into log values (nextval('s'), 'first')")
    assert rows(there, "select currval('s'), lastval()") == [(1, 1)]
    there.execute("insert into log select 10 + currval('s'), lastval()::text")
    run_all(there, "insert into log values (nextval('s'), 'second')", "select nextval('s')")
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select id, what from log order by id") == [(1, "first"), (2, "second"), (11, "1")]
    assert rows(there, "select currval('s')") == [(3,)]


def test_a_sequence_is_not_set_a_second_time(here: Session, there: Session):
    here.execute("create sequence s")
    forget(here, there)
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1", "insert into log select setval('s', 5), 'set'")
    assert rows(there, "select nextval('s')") == [(6,)]
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select nextval('s')") == [(7,)]


def test_values_that_were_drawn_stay(here: Session, there: Session):
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "begin", "update t set n = n + 1 where id = 1")
    drawn = rows(there, "insert into log (what) values ('a'), ('b') returning id")
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select id from log order by id") == drawn
    assert rows(here, "insert into log (what) values ('c') returning id") > drawn


def test_statements_before_the_conflict_are_not_run_again(here: Session, there: Session):
    there.execute("begin")
    assert rows(there, "update t set n = n + 1 where id = 2 returning n") == [(21,)]
    # Has the statement a snapshot of its own.
    here.execute("insert into log (what) values ('between')")
    there.execute("update t set n = n + 1 where id = 1")
    here.execute("update t set n = n + 1 where id = 1")
    there.execute("commit")
    assert rows(here, "select id, n from t order by id") == [(1, 12), (2, 21), (3, 30)]


def test_a_key_that_another_took_is_a_violation(here: Session, there: Session):
    run_all(here, "begin", "insert into t values (4, 0, 'd')")
    run_all(there, "begin", "insert into t values (5, 0, 'd')")
    here.execute("commit")
    assert sqlstate(there, "commit") == "23505"
    assert rows(there, "select id from t where code = 'd'") == [(4,)]


def test_a_parent_that_has_gone_is_a_violation(here: Session, there: Session):
    here.execute("create table child (id int primary key, t_id int references t)")
    run_all(there, "begin", "insert into child values (1, 2)")
    here.execute("delete from t where id = 2")
    assert sqlstate(there, "commit") == "23503"
    forget(here, there)
    run_all(there, "begin", "delete from t where id = 3")
    here.execute("insert into child values (1, 3)")
    assert sqlstate(there, "commit") == "23503"


def test_the_parent_of_a_new_row_may_be_counted_meanwhile(here: Session, there: Session):
    here.execute("create table child (id int primary key, t_id int references t)")
    for session, id_ in ((here, 1), (there, 2)):
        run_all(session, "begin", f"insert into child values ({id_}, 3)", "update t set n = n + 1 where id = 3")
    here.execute("commit")
    there.execute("commit")
    assert rows(here, "select n from t where id = 3") == [(32,)]


def test_blocks_with_savepoints_count_in_a_shared_row(here: Session, there: Session):
    increment = "update t set n = n + 1 where id = 1"
    run_all(there, "begin", "savepoint a", increment, "release a")
    here.execute(increment)
    there.execute("commit")
    forget(here, there)
    # What was undone had results, too.
    run_all(there, "begin", increment, "savepoint a", "select n from t", "rollback to a")
    here.execute(increment)
    assert sqlstate(there, "commit") == "40001"
    forget(here, there)
    run_all(there, "begin", "savepoint a", "update t set n = 0 where id = 2", "rollback to a", increment)
    here.execute(increment)
    there.execute("commit")
    assert rows(here, "select id, n from t order by id") == [(1, 15), (2, 20), (3, 30)]


def test_repeatable_read_fails_as_in_postgresql(here: Session, there: Session):
    run_all(there, "begin isolation level repeatable read", "update t set n = n + 1 where id = 1")
    here.execute("update t set n = n + 1 where id = 1")
    assert sqlstate(there, "commit") == "40001"


def test_settings_that_change_within_the_block(here: Session, there: Session):
    increment = "update t set n = n + 1 where id = 1"
    run_all(there, "begin", "set local lock_timeout = '30s'", increment)
    here.execute(increment)
    there.execute("commit")
    forget(here, there)
    run_all(there, "begin", increment, "set local search_path = nowhere")
    here.execute(increment)
    assert sqlstate(there, "commit") == "40001"


# Tables that other nodes write to.

INCREMENT = "update t set n = n + 1 where id = 1"


@pytest.fixture
def written(here: Session, there: Session) -> None:
    """Both nodes have written to the tables a short while ago, but not to the same rows."""
    for session, id_ in ((here, 2), (there, 3), (here, 2)):
        run_all(session, f"update t set n = n where id = {id_}", "insert into log (what) values ('x')")
    there.execute("select 1")
    assert here.node.epoch.contention.is_quiet


@pytest.mark.usefixtures("written")
def test_others_wait_for_a_row_that_was_changed_before_a_query(here: Session, there: Session):
    """So the row works as a mutex, and no block fails."""
    run_all(there, "begin", INCREMENT)
    assert rows(there, "select count(*) from log") == [(3,)]
    run_all(here, "begin", INCREMENT)
    waiting = Later(here, "select count(*) from log")
    run_all(there, "insert into log (what) values ('there')", "commit")
    assert [tuple(row) for row in waiting.result()] == [(4,)]
    here.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]


def test_others_wait_for_rows_of_a_table_that_is_new(here: Session, there: Session):
    """No other node has written to it yet, but they write to others."""
    run_all(there, "insert into log (what) values ('x')", "create table young (id int primary key, n int)")
    run_all(here, "insert into young values (1, 10)", "begin", "update young set n = n + 1 where id = 1")
    assert rows(here, "select sum(n) from young") == [(11,)]
    waiting = Later(there, "update young set n = n + 1 where id = 1")
    here.execute("commit")
    waiting.result()
    assert rows(here, "select n from young") == [(12,)]


@pytest.mark.usefixtures("written")
def test_a_commit_waits_for_a_row_that_was_changed_before_a_query(here: Session, there: Session):
    run_all(there, "begin", INCREMENT, "select count(*) from log")
    run_all(here, "begin", INCREMENT)
    waiting = Later(here, "commit")
    there.execute("commit")
    waiting.result()
    assert rows(here, "select n from t where id = 1") == [(12,)]


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    "other", ["update t set n = n + 1 where id = 3 returning n", "update t set n = n + 1 where code = 'c' returning n"]
)
def test_a_commit_that_waits_keeps_what_its_results_depend_on(
    nodes: tuple[Node, Node], here: Session, there: Session, other: str
):
    """It gives up only what it has locked after the row that it waits for."""
    run_all(there, "begin", INCREMENT)
    assert rows(there, "select count(*) from log") == [(3,)]
    run_all(here, "begin", other)
    there.execute("update t set n = n + 1 where id = 3")
    ending = Later(there, "commit")
    with closing(Session(nodes[0])) as third:
        third.execute("begin")
        overtaking = Later(third, f"{INCREMENT} returning n")
        here.execute("commit")
        ending.result()
        assert [tuple(row) for row in overtaking.result()] == [(12,)]
        run_all(third, "insert into log (what) values ('third')", "commit")
    assert rows(there, "select id, n from t order by id") == [(1, 12), (2, 20), (3, 32)]


@pytest.mark.usefixtures("written")
def test_rows_that_a_statement_could_not_change_yet_are_not_its_own(here: Session, there: Session):
    """It is run again, and may leave them as they are then."""
    # Of commits of many keys the node remembers none.
    here.execute("insert into t select i, 0, i::text from generate_series(10, 40) as g(i)")
    run_all(there, "begin", "update t set n = n where id = 3")
    transaction = there.open_transaction
    assert transaction is not None
    snapshot = transaction.state.snapshot.seq
    here.execute("update t set n = n + 1 where id <> 3")
    there.node.epoch.catch_up()
    table = there.node.epoch.schemas.newest.within().by_name["public", "t"]
    claim = claim_key(there.node.parts.write_plan(table).primary, (1,), LockStrength.NO_KEY_UPDATE)
    with pytest.raises(errors.RowChanged):
        transaction.state.write_locks.take([claim], snapshot, table)
    assert transaction.state.write_locks.secure(LockPolicy.NOWAIT) == {}
    there.execute("rollback")


@pytest.mark.usefixtures("written")
def test_a_block_that_was_overtaken_goes_back_before_its_query(here: Session, there: Session):
    run_all(there, "begin", INCREMENT, "insert into log (what) values ('there')")
    run_all(here, "begin", INCREMENT, "insert into log (what) values ('here')", "commit")
    assert rows(there, "select n from t where id = 1") == [(12,)]
    assert rows(there, "select count(*) from log") == [(5,)]
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]


@pytest.mark.usefixtures("written")
def test_returned_values_are_those_that_are_committed(here: Session, there: Session):
    there.execute("begin")
    assert rows(there, f"{INCREMENT} returning n") == [(11,)]
    here.execute("begin")
    waiting = Later(here, f"{INCREMENT} returning n")
    there.execute("commit")
    assert [tuple(row) for row in waiting.result()] == [(12,)]
    here.execute("commit")


@pytest.mark.usefixtures("written")
def test_a_count_of_changed_rows_is_not_in_doubt(here: Session, there: Session):
    run_all(there, "begin", INCREMENT)
    assert there.execute("update t set n = n + 1 where id > 0").tag == "UPDATE 3"
    run_all(here, "begin", INCREMENT, "insert into t values (4, 0, 'd')")
    waiting = Later(here, "commit")
    there.execute("commit")
    waiting.result()
    assert rows(here, "select id, n from t order by id") == [(1, 13), (2, 21), (3, 31), (4, 0)]


def test_rows_are_locked_in_the_order_of_their_keys(here: Session, monkeypatch: pytest.MonkeyPatch):
    """However they lie: a statement does not hold a later row while it waits for an earlier one."""
    here.execute("create table o (id int primary key, n int)")
    here.execute("insert into o values (30, 0), (10, 0), (20, 0)")
    locks = here.node.epoch.locks
    acquire, seen = locks.acquire, []

    def spy(owner: Any, key: Any, *others: Any) -> bool:
        seen.append(key)
        return acquire(owner, key, *others)

    monkeypatch.setattr(locks, "acquire", spy)
    for id_ in (10, 20, 30):
        here.execute(f"update o set n = 1 where id = {id_}")
    here.execute("update o set n = 2")
    assert seen[3:] == seen[:3]


def test_others_wait_for_what_a_block_writes_after_a_schema_change(here: Session, there: Session):
    """It could not be run again."""
    run_all(here, "begin", "alter table t add column note text default ''", "update t set n = n + 1, note = 'x'")
    run_all(there, "begin", INCREMENT)
    waiting = Later(there, "commit")
    here.execute("commit")
    waiting.result()
    assert rows(here, "select id, n, note from t order by id") == [(1, 12, "x"), (2, 21, "x"), (3, 31, "x")]


@pytest.mark.usefixtures("written")
def test_a_savepoint_keeps_what_was_locked_before_it(here: Session, there: Session):
    run_all(there, "begin", INCREMENT, "savepoint a", "select count(*) from log", "rollback to a")
    run_all(here, "set lock_timeout = '20ms'", "begin", INCREMENT)
    assert sqlstate(here, "commit") == "55P03"
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(11,)]


@pytest.mark.usefixtures("written")
def test_nothing_that_was_rolled_back_is_locked_before_a_query(here: Session, there: Session):
    """The scope of its locks is gone: one taken for it would never be released."""
    run_all(there, "begin", "savepoint a", INCREMENT, "rollback to a", "select count(*) from t")
    run_all(here, "set lock_timeout = '20ms'", INCREMENT)
    there.execute("commit")
    run_all(here, "begin", "select n from t where id = 1 for update nowait", "commit")
    # Locked again after the rollback, it is held again.
    run_all(there, "begin", "savepoint a", f"{INCREMENT} returning n", "rollback to a", INCREMENT)
    there.execute("select count(*) from t")
    assert sqlstate(here, "select n from t where id = 1 for update nowait") == "55P03"
    there.execute("commit")


@pytest.mark.parametrize("is_written", [False, True])
def test_blocks_that_query_pay_only_where_other_nodes_write(
    request: pytest.FixtureRequest, nodes: tuple[Node, Node], here: Session, is_written: bool
):
    request.getfixturevalue("written" if is_written else "there")
    catalog = CountingCatalog(nodes[0].parts.catalog)
    nodes[0].epoch.committer._catalog = nodes[0].epoch.shared._catalog = catalog
    run_all(here, "begin", INCREMENT, "select count(*) from t", "select n from t where id = 1", "commit")
    assert catalog.calls == (["take_locks", "commit"] if is_written else ["commit"])
    catalog.calls.clear()
    # No other block knows of new rows, and a block that gives no rows is run again if need be.
    run_all(here, "begin", "insert into t values (9, 0, 'z') returning id", "select count(*) from t", "commit")
    run_all(here, "begin", INCREMENT, "insert into log (what) values ('x') returning id", "commit")
    assert catalog.calls == ["commit", "commit"]


# Interleavings.

BLOCKS = (
    ("update t set n = n + 1 where id = 1", "insert into log (what) values ('x')"),
    ("update t set n = n + 1 where id = 1", "update t set n = n + 1 where id = 2"),
    ("update t set n = n + 1 where id = 2", "update t set n = n + 1 where id = 1"),
    ("update t set n = n + 1 where id <= 2", "select count(*) from log"),
    ("insert into t values (9, 0, 'z') on conflict (id) do update set n = t.n + 1", "delete from t where id = 8"),
)


def interleavings(steps: int) -> Iterator[tuple[int, ...]]:
    """All orders of two scripts of so many steps."""
    for places in combinations(range(2 * steps), steps):
        yield tuple(0 if n in places else 1 for n in range(2 * steps))


@pytest.mark.timeout(600)
def test_every_interleaving_of_two_blocks_is_one_after_the_other(here: Session, there: Session):
    """Single-threaded: a statement that waited would wait for ever, so none does, and none fails."""
    sessions = (here, there)
    generator = random.Random(SEED)
    for order in interleavings(3):
        scripts = [generator.choice(BLOCKS), generator.choice(BLOCKS)]
        here.execute("delete from t where id > 3")
        before = dict(rows(here, "select id, n from t"))
        forget(here, there)
        steps = [iter([*script, "commit"]) for script in scripts]
        for session in sessions:
            run_all(session, "begin", "select 1")
        for place in order:
            sessions[place].execute(next(steps[place]))
        after = dict(rows(here, "select id, n from t"))
        expected = {id_: n + sum(_adds(script, id_) for script in scripts) for id_, n in before.items()}
        upserts = sum(script is BLOCKS[4] for script in scripts)
        expected |= {9: upserts - 1} if upserts else {}
        assert after == expected, (SEED, order, scripts)


def _adds(script: Sequence[str], id_: int) -> int:
    return sum("update t" in text and (f"id = {id_}" in text or ("<= 2" in text and id_ <= 2)) for text in script)


# Contention that is known.


def test_a_commit_that_waits_deadlocks_with_no_other_when_it_is_resumed(
    nodes: tuple[Node, Node], here: Session, there: Session
):
    """The next writer of the row inside the node comes after it, in the node as well as between nodes."""
    here.execute("begin")
    here.execute("update t set n = n + 1 where id = 1")
    run_all(there, "begin", "select n from t where id = 1 for update", "update t set n = n + 1 where id = 1")
    first = Later(here, "commit")
    with closing(Session(nodes[0])) as third, ThreadPoolExecutor(1) as pool:
        epoch = nodes[0].epoch
        before = epoch.shared.waits
        third.execute("begin")
        second = pool.submit(third.execute, "update t set n = n + 1 where id = 1")
        wait_until(lambda: epoch.locks.waiting or epoch.shared.waits > before, "the third writer to wait")
        there.execute("commit")
        first.result()
        second.result(PATIENCE_S)
        third.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(13,)]


def test_the_second_writer_of_a_contended_row_waits(here: Session, there: Session):
    contend(here, there)
    here.execute("begin")
    assert rows(here, "update t set n = n + 1 where id = 1 returning n") == [(11,)]
    there.execute("begin")
    waiting = Later(there, "update t set n = n + 1 where id = 1 returning n")
    here.execute("commit")
    assert [tuple(row) for row in waiting.result()] == [(12,)]
    there.execute("commit")
    assert rows(here, "select n from t where id = 1") == [(12,)]


def test_a_wait_for_a_contended_row_has_a_time_limit(here: Session, there: Session):
    contend(here, there)
    run_all(here, "begin", "update t set n = n + 1 where id = 1")
    run_all(there, "set lock_timeout = '20ms'", "begin")
    assert sqlstate(there, "update t set n = n + 1 where id = 1") == "55P03"
    there.execute("rollback")
    here.execute("commit")


def test_a_deadlock_on_contended_rows_has_one_victim(here: Session, there: Session):
    contend(here, there)
    for session in (here, there, here):
        session.execute("update t set n = n where id = 2")
    there.execute("select 1")
    run_all(here, "begin", "update t set n = 0 where id = 1")
    run_all(there, "begin", "update t set n = 0 where id = 2")
    waiting = Later(here, "update t set n = 0 where id = 2")
    assert sqlstate(there, "update t set n = 0 where id = 1") == "40P01"
    there.execute("rollback")
    waiting.result()
    here.execute("commit")


def test_a_cycle_through_waits_inside_two_nodes_has_one_victim(nodes: tuple[Node, Node], here: Session, there: Session):
    """Each node has a session that waits for another of it: no node knows of all four waits by itself."""
    inside = {here: Session(nodes[0]), there: Session(nodes[1])}
    for number, (outer, inner) in enumerate(inside.items(), 1):
        run_all(outer, "set lock_timeout = '90s'", "begin", f"update t set n = n + 1 where id = {number}")
        run_all(inner, "set lock_timeout = '90s'", "begin", f"select pg_advisory_xact_lock({number})")
    waits: dict[Session, Later] = {}
    for number, inner in enumerate(inside.values(), 1):
        waits[inner] = LaterInside(inner, f"update t set n = n + 1 where id = {number}")
    for number, outer in ((2, here), (1, there)):
        waits[outer] = Later(outer, f"select pg_advisory_xact_lock({number})")
    assert [problem.sqlstate for problem in finish_blocks(waits)] == ["40P01"]
    for session in inside.values():
        session.close()
    assert rows(here, "select sum(n) from t") == [(63,)]
    assert not nodes[0].parts.catalog.lock_queues().waits


def test_a_node_learns_of_contention_from_the_log(here: Session, there: Session):
    """Before there was any conflict."""
    for session in (here, there, here):
        session.execute("update t set n = n + 1 where id = 1")
    there.execute("select 1")
    assert not here.node.epoch.contention.is_quiet
    assert not there.node.epoch.contention.is_quiet


def test_without_contention_the_catalog_is_asked_for_nothing(nodes: tuple[Node, Node], here: Session, there: Session):
    """A block takes one commit, besides looks at the log, whatever its node knows of other rows."""
    contend(here, there)
    catalog = CountingCatalog(nodes[0].parts.catalog)
    nodes[0].epoch.committer._catalog = nodes[0].epoch.shared._catalog = catalog
    note = "insert into log (what) values ('x')"
    for id_ in (2, 3):
        run_all(here, "begin", f"update t set n = n + 1 where id = {id_}", note, "commit")
    assert catalog.calls == ["commit"] * 2
    catalog.calls.clear()
    run_all(here, "begin", "update t set n = n + 1 where id = 1", note, "commit")
    assert catalog.calls == ["take_locks", "commit"]


# Many rows.


@pytest.fixture
def many(here: Session) -> None:
    here.execute("create table m (id int primary key, n int)")
    here.execute(f"insert into m select i, 0 from generate_series(1, {MANY}) as g(i)")


@pytest.mark.parametrize("others", ["update m set n = n + 1 where id = 7", "delete from m where id = 7"])
def test_other_writers_wait_for_a_change_of_many_rows(many: None, here: Session, there: Session, others: str):
    run_all(here, "begin", "update m set n = n + 1")
    assert rows(there, "select sum(n) from m") == [(0,)]
    there.execute("insert into m values (0, 0)")
    there.execute("begin")
    there.execute(others)
    waiting = Later(there, "commit")
    here.execute("commit")
    waiting.result()
    deleted = others.startswith("delete")
    assert rows(here, "select count(*), sum(n) from m") == [(MANY + 1 - deleted, MANY + (-1 if deleted else 1))]


def test_a_change_of_many_rows_does_not_fail_for_one(many: None, here: Session, there: Session):
    """Nor for one that was changed before it began, and is committed while it runs."""
    run_all(there, "begin", "update m set n = n + 1 where id = 7")
    run_all(here, "begin", "update m set n = n + 1", "select 1")
    waiting = Later(there, "commit")
    here.execute("commit")
    waiting.result()
    assert rows(here, "select sum(n) from m") == [(MANY + 1,)]


def test_a_change_of_many_rows_that_waits_closes_no_cycle(
    many: None, nodes: tuple[Node, Node], here: Session, there: Session
):
    """It waits for one writer of a row; another does not have to wait behind it, and so lock out the first."""
    lock = "select 1 from {} where id = {} for update"
    third = Session(nodes[0])
    run_all(here, "begin", lock.format("m", 1))
    run_all(there, "begin", lock.format("t", 1))
    third.execute("begin")
    of_many = Later(third, "update m set n = n + 1")
    behind = Later(there, lock.format("m", 7))
    closing = Later(here, lock.format("t", 1))
    behind.result()
    run_all(there, "update m set n = n + 1 where id = 7", "commit")
    closing.result()
    here.execute("commit")
    of_many.result()
    third.execute("commit")
    third.close()
    assert rows(here, "select sum(n) from m") == [(MANY + 1,)]


def test_two_changes_of_many_rows_wait_for_each_other(many: None, here: Session, there: Session):
    run_all(here, "begin", "update m set n = n + 1")
    there.execute("begin")
    waiting = Later(there, "update m set n = n + 1")
    here.execute("commit")
    waiting.result()
    there.execute("commit")
    assert rows(here, "select sum(n) from m") == [(2 * MANY,)]


def test_many_rows_in_autocommit_make_others_wait_once_they_have_lost(many: None, here: Session, there: Session):
    """A writer that never rests would starve it."""
    until = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        while not until.is_set():
            there.execute("update m set n = n + 1 where id = 7")
            written += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(3):
            here.execute("update m set n = n + 1")
    finally:
        until.set()
        thread.join()
    assert rows(here, "select sum(n) from m") == [(3 * MANY + written,)]


# Processes.


def test_the_lock_of_many_rows_ends_with_a_killed_process(many: None, place: Place, here: Session):
    with SqlProcess(place, expiry_ms=1_000) as other:
        other.run("begin")
        assert other.run("update m set n = n + 1") == []
        other.kill()
        run_all(here, "set lock_timeout = '60s'", "update m set n = n + 1 where id = 1")
    assert rows(here, "select sum(n) from m") == [(1,)]


@pytest.mark.timeout(600)
def test_no_client_of_four_processes_sees_a_conflict(place: Place, here: Session):
    print(f"seed {SEED}")
    seen: list[Any] = []

    def write(process: SqlProcess, number: int) -> None:
        generator = random.Random(f"{SEED}-{number}")
        for _ in range(ROUNDS):
            ids = sorted(generator.sample((1, 2, 3), 2))
            block = [f"update t set n = n + 1 where id = {id_}" for id_ in ids]
            for text in ("begin", *block, "insert into log (what) values ('x')", "commit"):
                answer = process.run(text)
                if isinstance(answer, str):
                    seen.append((text, answer))

    with ExitStack() as stack:
        executor = [stack.enter_context(SqlProcess(place)) for _ in range(PROCESSES)]
        threads = [threading.Thread(target=write, args=(process, n)) for n, process in enumerate(executor)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not seen
    assert rows(here, "select sum(n) from t") == [(60 + 2 * PROCESSES * ROUNDS,)]
    assert rows(here, "select count(*) from log") == [(PROCESSES * ROUNDS,)]
