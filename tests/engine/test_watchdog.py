"""Statements that take too long or too much are ended, and only those."""

import threading

import pytest

import seachange
from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.watchdog import IDLE_US, Watchdog
from seachange.engine.session.session import Session

ENDLESS = """select count(*) from generate_series(1, 100000000) as a(i), generate_series(1, 1000000) as b(j)
    where i % 7 = j % 5"""


class Clock:
    def __init__(self):
        self.now_us = 0

    def wall_us(self):
        return self.now_us

    def steady_us(self):
        return self.now_us


class Runner:
    def __init__(self):
        self.interrupts = 0
        self.is_settled = False

    def interrupt(self):
        self.interrupts += 1


class Limit:
    def __init__(self):
        self.count = 0

    def put_up(self):
        self.count += 1

    def take_down(self):
        self.count -= 1


@pytest.fixture
def limit():
    return Limit()


@pytest.fixture
def dog(limit):
    clock, memory = Clock(), [1000]
    return Watchdog(clock, lambda: memory[0], limit), clock, memory


def test_a_late_statement_is_interrupted_until_it_ends(dog):
    watchdog, clock, _ = dog
    late, other = Runner(), Runner()

    def run():
        with watchdog.watch(late, 100, 0):
            watchdog.step(clock.now_us)
            assert late.interrupts == 0
            clock.now_us = 100_000
            watchdog.step(clock.now_us)
            watchdog.step(clock.now_us)
            raise errors.QueryFailed(detail="whatever came of it")

    with watchdog.watch(other, 500, 0):
        with pytest.raises(errors.QueryCanceled) as failure:
            run()
        watchdog.step(clock.now_us)
    assert str(failure.value) == "canceling statement due to statement timeout"
    assert (late.interrupts, other.interrupts) == (2, 0)
    assert watchdog.step(clock.now_us) == clock.now_us + IDLE_US


def test_a_statement_that_does_not_notice_fails_all_the_same(dog):
    watchdog, clock, _ = dog

    def run():
        with watchdog.watch(Runner(), 1, 0):
            clock.now_us = 1_000
            watchdog.step(clock.now_us)

    with pytest.raises(errors.QueryCanceled):
        run()


def test_of_those_that_saw_the_process_grow_the_oldest_is_ended(dog):
    watchdog, clock, memory = dog
    first, second, unlimited = Runner(), Runner(), Runner()

    def run():
        with watchdog.watch(unlimited, 1_000, 0), watchdog.watch(first, 0, 500):
            watchdog.step(clock.now_us)
            memory[0] = 1400
            with watchdog.watch(second, 0, 500):
                watchdog.step(clock.now_us)
                memory[0] = 2000
                watchdog.step(clock.now_us)

    with pytest.raises(errors.OutOfMemory):
        run()
    assert (first.interrupts, second.interrupts, unlimited.interrupts) == (1, 0, 0)


def test_memory_is_limited_until_a_statement_that_is_too_large_has_ended(dog, limit):
    watchdog, clock, memory = dog
    late, large = Runner(), Runner()

    def grow():
        with watchdog.watch(large, 0, 500):
            watchdog.step(clock.now_us)
            assert limit.count == 0
            memory[0] = 2000
            watchdog.step(clock.now_us)
            watchdog.step(clock.now_us)
            assert limit.count == 1
            raise MemoryError

    # One that does not end is no reason to let another grow.
    late_one = watchdog.watch(late, 1, 0)
    late_one.__enter__()
    clock.now_us = 1_000
    with pytest.raises(errors.OutOfMemory):
        grow()
    assert (late.interrupts, large.interrupts, limit.count) == (3, 2, 0)
    with pytest.raises(errors.QueryCanceled):
        late_one.__exit__(None, None, None)
    assert limit.count == 0


def test_memory_is_limited_for_a_late_statement_too(dog, limit):
    watchdog, clock, memory = dog

    def run():
        with watchdog.watch(Runner(), 1, 500):
            clock.now_us = 1_000
            watchdog.step(clock.now_us)
            memory[0] = 2000
            watchdog.step(clock.now_us)
            assert limit.count == 1

    with pytest.raises(errors.QueryCanceled):
        run()
    assert limit.count == 0


@pytest.fixture
def node(tmp_path):
    node = open_node(tmp_path)
    yield node
    node.close()


def test_statement_timeout_while_others_go_on(node):
    slow, quick = Session(node), Session(node)
    quick.execute("create table t (id int primary key)")
    outcome = []

    def run():
        with pytest.raises(seachange.Error) as failure:
            slow.execute(ENDLESS)
        outcome.append(failure.value.sqlstate)

    done = beside = 0
    # A machine that is too busy for the others within the first limit is given more.
    for limit in ("300ms", "10s", "5min"):
        slow.execute(f"set statement_timeout = '{limit}'")
        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            quick.execute("insert into t values ($1)", [done])
            quick.execute("select count(*) from t")
            done += 1
            beside += thread.is_alive()
        thread.join()
        if beside:
            break
    assert set(outcome) == {"57014"}
    assert beside
    # The session goes on as well.
    slow.execute("reset statement_timeout")
    assert slow.execute("select count(*) from t").rows == [(done,)]
    slow.execute("begin")
    slow.execute("set local statement_timeout = 100")
    with pytest.raises(errors.QueryCanceled):
        slow.execute(ENDLESS)
    with pytest.raises(errors.InFailedTransaction):
        slow.execute("select 1")
    slow.execute("rollback")
    slow.execute("reset statement_timeout")
    assert slow.execute("select 1").rows == [(1,)]
    slow.close()
    quick.close()


@pytest.mark.parametrize(
    "text",
    [
        f"insert into t select i from ({ENDLESS.replace('count(*)', 'i')}) as q(i)",
        f"update t set id = ({ENDLESS})",
        f"explain analyze {ENDLESS}",
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
    ],
)
def test_every_kind_of_statement_is_ended_and_leaves_nothing(node, text):
    session = Session(node)
    session.execute("create table t (id bigint primary key)")
    session.execute("insert into t values (0)")
    session.execute("set statement_timeout = 200")
    with pytest.raises(errors.QueryCanceled):
        session.execute(text)
    session.execute("set statement_timeout = 0")
    assert session.execute("select * from t").rows == [(0,)]
    session.close()


def test_statement_beyond_the_growth_limit_is_out_of_memory(node):
    session = Session(node)
    session.execute("set seachange.process_growth_limit = '150MB'")
    with pytest.raises(errors.OutOfMemory) as failure:
        session.execute("select length(string_agg(repeat('x', 999) || i, '')) from generate_series(1, 3000000) as g(i)")
    assert failure.value.sqlstate == "53200"
    assert session.execute("select 1").rows == [(1,)]
    with pytest.raises(errors.InvalidSetting):
        session.execute("set seachange.process_growth_limit = 'much'")
    session.close()


def test_waiting_for_a_row_is_ended_too(node):
    holder, waiter = Session(node), Session(node)
    holder.execute("create table t (id int primary key, n int)")
    holder.execute("insert into t values (1, 0)")
    holder.execute("begin")
    holder.execute("update t set n = 1")
    waiter.execute("set statement_timeout = 200")
    with pytest.raises(errors.QueryCanceled) as failure:
        waiter.execute("update t set n = 2")
    assert "statement timeout" in str(failure.value)
    holder.execute("commit")
    waiter.execute("set statement_timeout = 0")
    assert waiter.execute("select n from t").rows == [(1,)]
    holder.close()
    waiter.close()
