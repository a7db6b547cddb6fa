"""Statements of one message that add indexes and constraints to one table are one change, and look like several."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS
from tests.engine.blocks import ROWS, ids, indexes, jobs, published, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

THREE = "create index p on a (x); create unique index q on a (y); alter table a add constraint c check (x >= 0)"
# The second fails over the rows of the table.
FAILING = "create index p on a (x); create unique index q on a (x)"


@contextmanager
def counted(found: dict[str, int]) -> Iterator[None]:
    """How often fault points are passed meanwhile."""
    FAULTS.arm("job.built", lambda: None, occurrence=1_000)
    before = FAULTS.counts()
    try:
        yield
        found.update({name: passed - before.get(name, 0) for name, passed in FAULTS.counts().items()})
    finally:
        FAULTS.disarm()


def test_statements_of_a_message_share_a_scan_and_a_wait(sessions: tuple[Session, Session]):
    block, other = sessions
    found: dict[str, int] = {}
    with counted(found):
        results = block.execute_all(THREE)
    assert [result.tag for result in results] == ["CREATE INDEX", "CREATE INDEX", "ALTER TABLE"]
    assert (found["job.built"], found["job.unit"], found["job.raised"]) == (1, 1, 2)
    assert jobs(other) == [("succeeded", "")]
    assert indexes(other) == {"p", "q"}
    with pytest.raises(errors.CheckViolation):
        other.execute("insert into a values (1000, -1, 'z')")
    with pytest.raises(errors.UniqueViolation):
        other.execute("insert into a values (1000, 1, 'r1')")
    assert inspect(block.node) == []


def test_statements_of_several_messages_do_not(sessions: tuple[Session, Session]):
    block, _ = sessions
    found: dict[str, int] = {}
    block.execute("begin")
    with counted(found):
        for statement in THREE.split("; "):
            block.execute(statement)
    assert (found["job.built"], found["job.unit"], found["job.raised"]) == (2, 2, 4)
    block.execute("commit")


def test_rows_of_the_block_are_in_all_indexes(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("begin; insert into a values (200, 55, 'own'); update a set x = 56 where id = 3")
    block.execute(f"{THREE}; insert into a values (201, 56, 'late')")
    assert [ids(block, where) for where in ("x = 55", "x = 56", "y = 'late'")] == [[200], [3, 201], [201]]
    assert ids(other, "x > 50") == []
    block.execute("commit")
    assert [ids(other, where) for where in ("x = 55", "x = 56", "y = 'late'")] == [[200], [3, 201], [201]]
    assert inspect(block.node) == []


def test_the_statement_that_fails_is_reported(sessions: tuple[Session, Session]):
    block, other = sessions
    results: list[object] = []
    with pytest.raises(errors.Error) as failure:
        block.execute_whole(block.prepare(FAILING), results)  # type: ignore[arg-type]
    assert failure.value.sqlstate == "23505"
    assert len(results) == 1
    assert '"q"' in str(failure.value)
    assert published(other) == []
    with pytest.raises(errors.UndefinedColumn):
        block.execute("create index p on a (x); create index q on a (missing)")
    assert published(other) == []
    assert inspect(block.node) == []


def test_savepoint_before_a_message_that_fails(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("begin; insert into a values (200, 55, 'own'); savepoint s")
    with pytest.raises(errors.Error, match="duplicated"):
        block.execute(FAILING)
    block.execute("rollback to s")
    assert indexes(block) == set()
    block.execute("create index p on a (x); create index q on a (x, y)")
    assert indexes(block) == {"p", "q"}
    block.execute("rollback to s; create index q on a (y); commit")
    assert published(other) == [("q", "PUBLIC")]
    assert len(ids(other, "true")) == ROWS + 1
    assert inspect(block.node) == []


def test_cancel_while_they_are_built(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("begin; savepoint s")
    FAULTS.arm("job.raised", block.interrupt)
    try:
        with pytest.raises(errors.Error) as failure:
            block.execute(THREE)
    finally:
        FAULTS.disarm()
    assert failure.value.sqlstate == "57014"
    assert published(other) == []
    block.execute("rollback to s")
    assert indexes(block) == set()
    block.execute(f"{THREE}; commit")
    assert indexes(other) == {"p", "q"}


def test_a_statement_that_another_has_done_is_not_left_out_later(sessions: tuple[Session, Session]):
    """The second statement of the message is done with the first, and is then cancelled."""
    block, other = sessions
    message = "create index p on a (x); create index q on a (y)"
    block.execute("begin; savepoint s")
    FAULTS.arm("block.built", block.interrupt)
    try:
        with pytest.raises(errors.QueryCanceled):
            block.execute(message)
    finally:
        FAULTS.disarm()
    block.execute("rollback to s; truncate a")
    block.execute(message)
    assert indexes(block) == {"p", "q"}
    block.execute("commit")
    assert indexes(other) == {"p", "q"}


def test_statements_with_a_time_limit_have_one_each(sessions: tuple[Session, Session]):
    block, _ = sessions
    block.execute("set statement_timeout = '1h'")
    found: dict[str, int] = {}
    with counted(found):
        block.execute(THREE)
    assert found["job.built"] == 2


def test_names_that_are_chosen_differ(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("create index on a (x); create index on a (x); alter table a add unique (y), alter x set not null")
    assert indexes(other) == {"a_x_idx", "a_x_idx1", "a_y_key"}
    assert rows(other, "select is_nullable from information_schema.columns where column_name = 'x'") == [("NO",)]


def test_foreign_key_on_a_key_of_the_same_message(sessions: tuple[Session, Session]):
    block, other = sessions
    block.execute("alter table a add unique (y); alter table a add constraint f foreign key (y) references a (y)")
    block.execute("insert into a values (200, 1, 'new')")
    with pytest.raises(errors.UniqueViolation):
        other.execute("insert into a values (201, 1, 'new')")
    assert rows(other, "select conname from pg_constraint where contype = 'f'") == [("f",)]
    assert inspect(block.node) == []
