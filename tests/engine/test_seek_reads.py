"""SERIALIZABLE: what a look-up through an index has read, found or not, must still be so at commit."""

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet


@pytest.fixture
def sessions(tmp_path):
    nodes = [open_quiet(tmp_path), open_quiet(tmp_path)]
    sessions = [Session(node) for node in nodes]
    sessions[0].execute("create table t (id int primary key, mark text unique, v int)")
    sessions[0].execute("create index t_v on t (v)")
    sessions[0].execute("create index t_lower on t (lower(mark))")
    sessions[0].execute("create unique index t_some on t (v) where mark > 'a'")
    sessions[0].execute("create table log (n int)")
    sessions[0].execute("insert into t values (1, 'a', 5), (2, 'b', 6)")
    yield sessions
    for session in sessions:
        session.close()
    for node in nodes:
        node.close()


@pytest.mark.parametrize(
    ("read", "change", "refused"),
    [
        ("select id from t where mark = 'a'", "update t set v = 0 where id = 1", True),
        ("select id from t where mark = 'a'", "update t set mark = 'x' where id = 1", True),
        ("select id from t where mark = 'a'", "update t set v = 0 where id = 2", False),
        ("select id from t where mark = 'c'", "insert into t values (3, 'c', 7)", True),
        ("select id from t where mark = 'c'", "update t set mark = 'c' where id = 2", True),
        ("select id from t where mark = 'c'", "insert into t values (3, 'd', 7)", False),
        ("select id from t where mark = 'c' and v = 1", "insert into t values (3, 'c', 7)", True),
        ("select id from t where v = 9", "insert into t values (3, 'c', 9)", True),
        ("select id from t where v = 5", "delete from t where id = 1", True),
        ("select id from t where lower(mark) = 'c'", "insert into t values (3, 'C', 9)", True),
        ("select id from t where lower(mark) = 'c'", "update t set mark = 'C' where id = 2", True),
        ("select id from t where v = 5 and mark > 'a'", "update t set mark = 'x' where id = 1", True),
        ("select id from t where v = 6 and mark > 'a'", "update t set mark = 'x' where id = 2", True),
        ("select id from t where v = 9 and mark > 'b'", "insert into t values (3, 'c', 9)", True),
        ("select t.id from log join t on t.v = log.n where log.n = 9", "insert into t values (3, 'c', 9)", True),
        ("select id from t where mark in ('c', 'd')", "insert into t values (3, 'd', 9)", True),
    ],
)
def test_a_look_up_is_something_read(sessions, read, change, refused):
    mine, other = sessions
    mine.execute("begin isolation level serializable")
    mine.execute(read)
    mine.execute("insert into log values (1)")
    other.execute(change)
    if not refused:
        mine.execute("commit")
        return
    with pytest.raises(errors.SerializationFailure):
        mine.execute("commit")
