"""Files of an index that was never public: garbage collection takes them at once, whatever the retention, since no
query of the past reads them."""

from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.blocks import begin
from tests.support.judge import inspect, referenced_segments

DAY_US = 24 * 3_600 * 1_000_000


def files(session: Session) -> set[str]:
    return set(session.node.parts.files.names())


def collect(session: Session, *others: Session) -> None:
    for each in (session, *others):
        each.node.read_head()
        each.node.beat()
    session.node.collect_garbage(DAY_US)


@pytest.mark.parametrize(
    "sql",
    ["create index i on a (x)", "create unique index i on a (id, x)", "alter table a alter column x type text using y"],
)
def test_files_of_a_rolled_back_block_go_at_once(sessions: tuple[Session, Session], sql: str):
    block, other = sessions
    before = files(block)
    begin(block)
    block.execute(sql)
    other.execute("update a set x = 3 where id = 3")
    built = files(block) - before
    assert built
    collect(other, block)
    assert built <= files(block)
    block.execute("rollback")
    collect(other, block)
    assert not built & files(block)
    assert inspect(other.node) == []


def test_files_of_a_failed_job_go_at_once(sessions: tuple[Session, Session]):
    session, other = sessions
    session.execute("update a set x = 1")
    before = files(session)
    with pytest.raises(errors.Error, match="could not create unique index"):
        session.execute("create unique index i on a (x)")
    collect(session, other)
    assert files(session) <= before
    assert inspect(session.node) == []


def test_open_transactions_keep_the_files(sessions: tuple[Session, Session]):
    """One that maintains the index, and does not know yet that it has gone, may still read it."""
    block, other = sessions
    before = files(block)
    begin(block)
    block.execute("create index i on a (x)")
    built = files(block) - before
    begin(other, "repeatable read")
    other.execute("select count(*) from a")
    block.execute("rollback")
    collect(block, other)
    assert built <= files(block)
    other.execute("commit")
    collect(block, other)
    assert not built & files(block)


def test_files_of_a_dropped_index_are_kept_for_the_past(sessions: tuple[Session, Session]):
    session, other = sessions
    before = files(session)
    session.execute("create index i on a (x)")
    built = files(session) - before
    session.execute("drop index i")
    collect(session, other)
    assert built <= files(session)
    kept = {Path(name).name for name in built}
    assert not kept & {session.node.parts.warehouse.name(id_) for id_ in referenced_segments(session.node)}


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_table_that_is_dropped_with_its_new_index_comes_back_without_it(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    block.execute("insert into a values (200, 2, 'own')")
    block.execute("create index i on a (x)")
    block.execute("drop table a")
    block.execute("commit")
    collect(block, other)
    other.execute("undrop table a")
    # With the rows that it had when it was dropped.
    assert list(other.execute("select count(*), max(id) from a").rows) == [(101, 200)]
    other.execute("create index i on a (x)")
    assert inspect(other.node) == []
