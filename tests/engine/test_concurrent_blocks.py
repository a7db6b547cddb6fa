"""Transaction blocks that change tables while other sessions change the same ones: they wait, and go on."""

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.blocks import begin, ids, indexes, published, rows, sent
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

LEVELS = ["read committed", "repeatable read", "serializable"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_column_of_an_uncommitted_index_is_dropped_after_the_block(
    sessions: tuple[Session, Session], level: str, end: str
):
    """Above READ COMMITTED the snapshot has the version with the hidden index, which nothing may be planned from."""
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    begin(other, level)
    assert len(ids(other, "y = 'r1'")) == 1
    with sent(other, "alter table a drop column x") as ended:
        block.execute(end)
    assert ended == [""]
    other.execute("commit")
    assert published(other) == []
    assert inspect(other.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("table", ["a", "b"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_name_of_an_uncommitted_index_is_free_after_rollback(
    sessions: tuple[Session, Session], level: str, table: str, end: str
):
    block, other = sessions
    other.execute("create table b (id int primary key, x int)")
    other.execute("insert into b values (1, 1)")
    begin(block)
    block.execute("create index i on a (x)")
    begin(other, level)
    assert ids(other, "y = 'r1'") == [1]
    with sent(other, f"create index i on {table} (id)") as ended:
        block.execute(end)
    assert ended == ["" if end == "rollback" else errors.DuplicateTable.sqlstate]
    other.execute("commit")
    assert indexes(block) == ({"i"} if end == "commit" or table == "a" else set())


def test_table_that_was_dropped_since_the_snapshot_is_a_conflict(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(other, "repeatable read")
    # DROP would wait for a writer.
    assert ids(other, "y = 'r1'") == [1]
    block.execute("drop table a")
    other.execute("update a set x = 0 where x is null")
    with pytest.raises(errors.SerializationFailure):
        other.execute("alter table a alter column x set not null")


@pytest.mark.parametrize("level", LEVELS)
def test_index_if_not_exists_waits_for_an_uncommitted_one(sessions: tuple[Session, Session], level: str):
    """It may be rolled back: then there would be none."""
    block, other = sessions
    begin(block)
    block.execute("create index i on a (x)")
    begin(other, level)
    assert ids(other, "y = 'r1'") == [1]
    with sent(other, "create index if not exists i on a (y)") as ended:
        block.execute("rollback")
    assert ended == [""]
    other.execute("commit")
    assert indexes(block) == {"i"}


def test_block_that_goes_back_sees_what_was_committed_after_a_constraint(sessions: tuple[Session, Session]):
    """Its row violated the constraint, which it could not read behind; written again, the row does not."""
    block, other = sessions
    other.execute("update a set x = x + 20")
    begin(block)
    block.execute("update a set x = x - 15 where id = 1")
    other.execute("update a set x = 30 where id = 1")
    other.execute("alter table a add check (x > 10)")
    other.execute("insert into a values (300, 11, 'late')")
    assert rows(block, "select id, x from a where id in (1, 300) order by id") == [(1, 15), (300, 11)]
    block.execute("commit")
    assert rows(other, "select id, x from a where id in (1, 300) order by id") == [(1, 15), (300, 11)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", ["create index i on a (x)", "alter table a alter column x type text using x::text"])
def test_block_that_begins_with_a_change_sees_what_it_has_waited_for(
    sessions: tuple[Session, Session], level: str, first: str
):
    """It has read nothing yet, so its snapshot is one after the wait, at every level."""
    block, other = sessions
    begin(block)
    block.execute(first)
    block.execute("insert into a (id, y) values (300, 'first')")
    begin(other, level)
    with sent(other, "alter table a alter column y type varchar(9) using y::varchar(9)") as ended:
        block.execute("commit")
    assert ended == [""]
    assert ids(other, "y = 'first'") == [300]
    other.execute("commit")
    assert inspect(other.node) == []
