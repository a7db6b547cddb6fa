"""Unique indexes over rows inside a transaction block: they check the block at once, others from its COMMIT on."""

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, Sessions, begin, indexes, published, refused, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

UNIQUE = ["create unique index u on a (x)", "alter table a add constraint u unique (x)"]
BULK = 3_000
SETUP = (
    "create table a (id int primary key, x int, y text)",
    "insert into a values (1, 1, 'r'), (2, 2, 'r'), (3, 3, 'r')",
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sql", UNIQUE)
def test_key_is_checked_in_the_block_at_once_and_for_others_after_commit(sessions: Sessions, sql: str, level: str):
    block, other = sessions
    late = Session(other.node)
    begin(late)
    late.execute("insert into a values (50, 8, 'late')")
    begin(block, level)
    block.execute("update a set x = 7 where id = 2")
    block.execute(sql)
    block.execute("savepoint s")
    for bad in ("insert into a values (20, 3, 'own')", "update a set x = 7 where id = 1"):
        with refused("23505"):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute("insert into a values (21, 2, 'own'), (22, 8, 'own')")
    block.execute("insert into a values (23, 3, 'new') on conflict (x) do update set y = excluded.y")
    block.execute("insert into a values (24, 8, 'new') on conflict (x) do nothing")
    other.execute("insert into a values (30, 30, 'other')")
    block.execute("commit")
    kept = [(1, 1, "r"), (2, 7, "r"), (3, 3, "new"), (21, 2, "own"), (22, 8, "own"), (30, 30, "other")]
    assert rows(other, "select * from a order by id") == kept
    with refused("23505"):
        other.execute("insert into a values (31, 2, 'other')")
    # It wrote its row before there was an index.
    with pytest.raises((errors.UniqueViolation, errors.SerializationFailure)):
        late.execute("commit")
    late.close()
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
def test_index_is_validated_under_own_rows(sessions: Sessions, level: str, bulk: bool):
    block, other = sessions
    other.execute(f"insert into a select i, i / 2, 'twice' from generate_series(100, {100 + BULK}) g (i)")
    other.execute("insert into a values (4, 1, 'again')")
    begin(block, level)
    block.execute("delete from a where y = 'twice' and id % 2 = 1" if not bulk else "update a set x = id where id > 4")
    block.execute("savepoint s")
    with refused("23505"):
        block.execute("create unique index u on a (x)")
    block.execute("rollback to s")
    block.execute("update a set x = -4 where id = 4")
    block.execute("create unique index u on a (x)")
    block.execute("savepoint s")
    with refused("23505"):
        block.execute("insert into a values (-1, -4, 'own')")
    block.execute("rollback to s")
    block.execute("commit")
    assert rows(other, "select count(*) - count(distinct x) from a") == [(0,)]
    assert rows(other, "select id from a where x = -4") == [(4,)]
    with refused("23505"):
        other.execute("insert into a values (-1, 1, 'other')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_own_rows_with_the_same_key_are_refused(sessions: Sessions, level: str):
    block, _ = sessions
    begin(block, level)
    block.execute("insert into a values (20, 20, 'own')")
    block.execute("savepoint s")
    block.execute("insert into a values (21, 20, 'own')")
    with refused("23505"):
        block.execute("create unique index u on a (x)")
    block.execute("rollback to s")
    block.execute(f"insert into a select i, i % 2000 + 100, 'bulk' from generate_series(100, {100 + BULK}) g (i)")
    with refused("23505"):
        block.execute("create unique index u on a (x)")
    block.execute("rollback")
    assert published(block) == []


OWN = {
    "few rows": "insert into a values (20, 20, 'own')",
    "many rows": f"insert into a select i, i, 'own' from generate_series(20, {20 + BULK}) g (i)",
}
OTHERS = {
    "few rows": "insert into a values (-1, 20, 'other')",
    "many rows": f"insert into a select -i, i, 'other' from generate_series(20, {20 + BULK}) g (i)",
}


MEETINGS = [
    ("read committed", "few rows", "few rows", True),
    ("repeatable read", "few rows", "many rows", False),
    ("read committed", "many rows", "few rows", False),
    ("repeatable read", "many rows", "few rows", True),
    ("read committed", "many rows", "many rows", True),
]


@pytest.mark.parametrize(("level", "own", "others", "before"), MEETINGS)
def test_own_key_is_looked_up_again_at_commit(sessions: Sessions, level: str, own: str, others: str, before: bool):
    """`before`: the rows are written before the index is created."""
    block, other = sessions
    statements = [OWN[own], "create unique index u on a (x)"]
    for is_kept in (True, False):
        begin(block, level)
        for statement in statements if before else reversed(statements):
            block.execute(statement)
        # The other session does not wait for the block, and is not refused.
        other.execute(OTHERS[others])
        if not is_kept:
            other.execute("delete from a where id < 0")
            block.execute("commit")
            break
        with pytest.raises(errors.SerializationFailure) as caught:
            block.execute("commit")
        assert 'constraint "u" is violated' in str(caught.value)
        assert "(x)=(" in str(caught.value)
        other.execute("delete from a where id < 0")
    assert rows(other, "select count(*) from a where x = 20") == [(1,)]
    with refused("23505"):
        other.execute("insert into a values (-1, 20, 'other')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bad", ["insert into a values (30, 1, 'other')", "update a set x = 2 where id = 1"])
def test_duplicate_by_others_fails_the_block(sessions: Sessions, level: str, bad: str):
    block, other = sessions
    begin(block, level)
    block.execute("create unique index u on a (x)")
    other.execute(bad)
    with pytest.raises(errors.SerializationFailure) as caught:
        block.execute("commit")
    assert 'constraint "u" is violated by a row of a concurrent transaction' in str(caught.value)
    assert "(x)=(" in str(caught.value)
    assert published(other) == []
    assert inspect(block.node) == []


def test_writers_of_one_key_neither_wait_nor_fail(sessions: Sessions):
    block, other = sessions
    third = Session(block.node)
    begin(block)
    block.execute("create unique index u on a (x)")
    begin(other)
    begin(third)
    other.execute("insert into a values (30, 30, 'other')")
    third.execute("insert into a values (31, 30, 'third')")
    other.execute("commit")
    third.execute("commit")
    third.close()
    with pytest.raises(errors.SerializationFailure) as caught:
        block.execute("commit")
    assert "(x)=(30)" in str(caught.value)
    assert rows(other, "select id from a where x = 30 order by id") == [(30,), (31,)]


def test_conflict_target_with_a_row_newer_than_the_snapshot_is_a_conflict(sessions: Sessions):
    block, other = sessions
    begin(block, "repeatable read")
    assert rows(block, "select count(*) from a") == [(3,)]
    other.execute("insert into a values (30, 30, 'other')")
    block.execute("create unique index u on a (x)")
    block.execute("savepoint s")
    for sql in ("insert into a values (20, 30, 'own')", "insert into a values (20, 30, 'own') on conflict do nothing"):
        with pytest.raises((errors.UniqueViolation, errors.SerializationFailure)):
            block.execute(sql)
        block.execute("rollback to s")
    block.execute("insert into a values (20, 20, 'own')")
    block.execute("commit")
    assert rows(other, "select count(*) from a") == [(5,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_undone_leaves_nothing(sessions: Sessions, level: str):
    block, other = sessions
    begin(block, level)
    block.execute("insert into a values (20, 20, 'own')")
    block.execute("savepoint s")
    block.execute("create unique index u on a (x)")
    assert published(other) == [("u", "VALIDATING")]
    block.execute("rollback to s")
    assert published(other) == []
    block.execute("insert into a values (21, 20, 'own')")
    block.execute("create unique index v on a (y, x, id)")
    block.execute("drop index v")
    # Keys of an index that is never public are no conflict.
    other.execute("insert into a values (30, 20, 'own')")
    block.execute("commit")
    assert rows(other, "select id from a where x = 20 order by id") == [(20,), (21,), (30,)]
    begin(block, level)
    block.execute("delete from a where x = 20")
    block.execute("alter table a add unique (x)")
    block.execute("rollback")
    assert published(other) == []
    assert rows(other, "select count(*) from a where x = 20") == [(3,)]
    assert inspect(block.node) == []


def test_constraint_using_index_and_on_a_new_column(sessions: Sessions):
    block, other = sessions
    begin(block)
    block.execute("create unique index u on a (x)")
    block.execute("alter table a add constraint k unique using index u")
    block.execute("alter table a add column z int")
    block.execute("update a set z = id")
    block.execute("alter table a add unique (z)")
    block.execute("create unique index e on a (lower(y)) where id > 2")
    block.execute("alter table a add column w int unique")
    block.execute("savepoint s")
    for bad in ("(20, 1, 'own', 20, 1)", "(20, 20, 'own', 1, 1)", "(20, 20, 'R', 20, 1)"):
        with refused("23505"):
            block.execute(f"insert into a values {bad}")
        block.execute("rollback to s")
    other.execute("insert into a values (30, 30, 'other')")
    block.execute("commit")
    assert indexes(other) == {"k", "a_z_key", "a_w_key", "e"}
    assert rows(other, "select z from a order by id") == [(1,), (2,), (3,), (None,)]
    with refused("23505"):
        other.execute("insert into a values (31, 31, 'x', 3)")
    assert inspect(block.node) == []
