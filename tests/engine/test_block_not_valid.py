"""Constraints that a transaction block adds as NOT VALID, and validates before its COMMIT."""

import pytest

from seachange import errors
from tests.engine.blocks import LEVELS, ONE_TABLE, Sessions, begin, is_valid, refused, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

SETUP = (
    *ONE_TABLE,
    "create table parents as select i as id from generate_series(0, 9) g (i)",
    "alter table parents add primary key (id)",
)
ADDED = {
    "check": ("alter table a add constraint k check (x < 50) not valid", "23514"),
    "foreign key": ("alter table a add constraint k foreign key (x) references parents not valid", "23503"),
}
# Publishes the changes of the block so far as hidden ones, or leaves them to COMMIT.
BETWEEN = {"at once": "select 1", "after another change": "create index i on a (y)"}
VALIDATE = "alter table a validate constraint k"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", ADDED)
def test_constraint_is_validated_in_the_block_that_adds_it(sessions: Sessions, kind: str, between: str, level: str):
    (block, other), (add, sqlstate) = sessions, ADDED[kind]
    begin(block, level)
    block.execute("insert into a values (200, 55, 'own')")
    block.execute(add)
    block.execute(BETWEEN[between])
    other.execute("insert into a values (300, 56, 'other')")
    block.execute("savepoint s")
    # Its own row, and that of another session, violate it.
    for repair in ("delete from a where id = 200", "delete from a where id = 300"):
        with refused(sqlstate):
            block.execute(VALIDATE)
        block.execute("rollback to s")
        session = block if "200" in repair else other
        session.execute(repair)
        block.execute("savepoint s")
    block.execute(VALIDATE)
    assert is_valid(block, "k")
    block.execute("commit")
    assert is_valid(other, "k")
    with refused(sqlstate):
        other.execute("insert into a values (301, 55, 'other')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", ADDED)
def test_row_of_another_session_is_accepted_and_fails_the_commit(sessions: Sessions, kind: str, between: str):
    (block, other), (add, _) = sessions, ADDED[kind]
    begin(block)
    block.execute(add)
    block.execute(BETWEEN[between])
    block.execute(VALIDATE)
    other.execute("insert into a values (300, 55, 'other')")
    with pytest.raises(errors.SerializationFailure, match='constraint "k" is violated by'):
        block.execute("commit")
    assert rows(other, "select conname from pg_constraint where conname = 'k'") == []
    other.execute("insert into a values (301, 55, 'other')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", ADDED)
def test_constraint_is_not_valid_again_after_rollback_to_savepoint(sessions: Sessions, kind: str, between: str):
    (block, other), (add, sqlstate) = sessions, ADDED[kind]
    begin(block)
    block.execute(add)
    block.execute(BETWEEN[between])
    for _ in range(2):
        block.execute("savepoint s")
        block.execute(VALIDATE)
        block.execute("rollback to s")
        assert not is_valid(block, "k")
    other.execute("insert into a values (300, 55, 'other')")
    block.execute("commit")
    assert not is_valid(other, "k")
    with refused(sqlstate):
        other.execute("insert into a values (301, 55, 'other')")
    with refused(sqlstate):
        other.execute(VALIDATE)
    assert inspect(block.node) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("kind", ADDED)
def test_rows_that_are_older_than_the_constraint_are_not_checked(sessions: Sessions, kind: str, bulk: bool):
    (block, other), (add, sqlstate) = sessions, ADDED[kind]
    begin(block)
    block.execute(f"insert into a select i, 55, 'own' from generate_series(1000, {9_000 if bulk else 1_001}) g (i)")
    block.execute(add)
    block.execute("create index i on a (x)")
    block.execute("alter table a add column z uuid default gen_random_uuid()")
    block.execute("savepoint s")
    with refused(sqlstate):
        block.execute("insert into a values (200, 55, 'own')")
    block.execute("rollback to s")
    block.execute("commit")
    assert rows(other, "select min(id) from a where x = 55") == [(1000,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("kind", ADDED)
def test_rollback_leaves_nothing(sessions: Sessions, kind: str):
    (block, other), (add, _) = sessions, ADDED[kind]
    begin(block)
    block.execute(add)
    block.execute(VALIDATE)
    block.execute("rollback")
    other.execute("insert into a values (300, 55, 'other')")
    other.execute(add)
    other.execute("drop table parents cascade")
    assert inspect(block.node) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", ADDED)
def test_constraint_of_a_column_that_the_block_has_added(sessions: Sessions, kind: str, between: str, level: str):
    """Other sessions write the column, hidden, before they are checked by what it refers to."""
    (block, other), (add, _) = sessions, ADDED[kind]
    other.execute("begin")
    other.execute("update a set y = 'open' where id = 1")
    begin(block, level)
    block.execute("alter table a add column z int default 3")
    block.execute(add.replace("(x", "(z"))
    block.execute(BETWEEN[between])
    block.execute(VALIDATE)
    other.execute("commit")
    other.execute("insert into a values (300, 55, 'other')")
    block.execute("insert into a values (200, 55, 'own')")
    block.execute("commit")
    assert rows(other, "select id, z from a where id in (1, 200, 300) order by id") == [(1, 3), (200, 3), (300, 3)]
    assert is_valid(other, "k")
    assert inspect(block.node) == []


def test_foreign_key_after_a_column_does_not_check_rows_of_the_block(sessions: Sessions):
    """It is known to other sessions before COMMIT, which publishes it together with the column."""
    block, other = sessions
    begin(block)
    block.execute("insert into a values (200, 55, 'own')")
    block.execute("alter table a add column n int default 1")
    block.execute(ADDED["foreign key"][0])
    other.node.read_head()
    table = next(t for t in other.node.epoch.schemas.newest.by_id.values() if t.name == "a")
    assert [(key.name, key.state.value) for key in table.foreign_keys] == [("k", "WRITE_ONLY")]
    with refused("23503"):
        block.execute("savepoint s; insert into a values (201, 55, 'own')")
    block.execute("rollback to s; commit")
    assert rows(other, "select x, n from a where id = 200") == [(55, 1)]
    with refused("23503"):
        other.execute("insert into a values (301, 55, 'other')")
    assert inspect(block.node) == []
