"""Rows are rewritten under another primary key while others write."""

import threading
from collections.abc import Callable
from contextlib import closing

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check


def test_a_primary_key_is_added_while_others_write(node: Node):
    with closing(Session(node)) as session, closing(Session(node)) as writer:
        session.execute("create table t (a int not null, b text)")
        session.execute("create index t_b on t (b)")
        session.execute("insert into t select i, 'b' || i from generate_series(0, 9999) s(i)")
        expected = {i: f"b{i}" for i in range(10_000)}
        rounds, ended = 0, threading.Event()

        def write() -> None:
            nonlocal rounds
            while not ended.is_set() or rounds < 5:
                changed, gone, new = rounds * 37 % 10_000, rounds * 91 % 10_000, 10_000 + rounds
                writer.execute(f"update t set b = 'w{rounds}' where a = {changed}")
                writer.execute(f"delete from t where a = {gone}")
                writer.execute(f"insert into t values ({new}, 'n{rounds}')")
                if changed in expected:
                    expected[changed] = f"w{rounds}"
                expected.pop(gone, None)
                expected[new] = f"n{rounds}"
                rounds += 1

        problems = _running(write, lambda: session.execute("alter table t add primary key (a)"), ended)
        assert problems == []
        assert dict(map(tuple, session.execute("select a, b from t").rows)) == expected
        assert session.execute("select a from t where b = 'n0'").rows == [(10_000,)]
        assert check(node) == []


def _running(work: Callable[[], None], meanwhile: Callable[[], object], ended: threading.Event) -> list[errors.Error]:
    """What went wrong with `work`, which goes on for as long as the other takes."""
    problems: list[errors.Error] = []

    def run() -> None:
        try:
            work()
        except errors.Error as problem:
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        meanwhile()
    finally:
        ended.set()
        thread.join()
    return problems


def test_rows_are_found_as_they_were_before_they_were_written_again(node: Node, other: Node):
    """By a node that knows nothing of the index which held them then."""
    with closing(Session(node)) as session:
        session.execute("create table t (a int primary key, b int not null)")
        session.execute("insert into t values (1, 10), (2, 20)")
        before = node.epoch.applied
        session.execute("alter table t alter primary key using columns (b)")
        between = node.epoch.applied
        session.execute("alter table t alter column a type text using 'a' || a")
        session.execute("delete from t where b = 10")
    with closing(Session(other)) as session:
        for at, rows in ((between, [(1, 10), (2, 20)]), (before, [(1, 10), (2, 20)]), ("", [("a2", 20)])):
            session.execute(f"set seachange.as_of = '{at}'")
            assert sorted(session.execute("select * from t").rows) == rows
            assert session.execute("select b from t where a::text like '%2'").rows == [(20,)]
