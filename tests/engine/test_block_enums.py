"""Enum types inside a transaction block: values that are dropped, and expressions over values that are new."""

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, Sessions, begin, jobs, refused, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

DROP = "alter type mood drop value 'sad'"
BULK = 3_000
SETUP = (
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create table a (id int primary key, m mood, ms mood[])",
    "create table b (m mood)",
    "create index on a (m)",
    "insert into a values (1, 'ok', '{ok}'), (2, 'happy', '{ok,happy}'), (3, 'sad', null)",
)


def labels(session: Session) -> list[str]:
    return [label for (label,) in rows(session, "select enumlabel from pg_enum order by enumsortorder")]


def is_at_rest(session: Session) -> bool:
    """Whether no table has a constraint that keeps a value out."""
    session.node.read_head()
    return not any(table.checks for table in session.node.epoch.schemas.newest.by_id.values())


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("level", LEVELS)
def test_value_that_the_block_has_replaced_is_dropped(sessions: Sessions, level: str, bulk: bool):
    block, other = sessions
    if bulk:
        other.execute(f"insert into a select i, 'sad', array['sad']::mood[] from generate_series(10, {BULK}) g (i)")
    begin(block, level)
    block.execute("savepoint s")
    with refused("23514"):
        block.execute(DROP)
    block.execute("rollback to s")
    block.execute("update a set m = 'ok', ms = null where m = 'sad'")
    block.execute("insert into a values (4, 'sad', null)")
    block.execute("savepoint s")
    with refused("23514"):
        block.execute(DROP)
    block.execute("rollback to s")
    block.execute("delete from a where id = 4")
    block.execute(DROP)
    assert labels(block) == ["ok", "happy"]
    assert labels(other) == ["sad", "ok", "happy"]
    other.execute("insert into b values ('happy')")
    other.execute("insert into a values (5, 'happy', '{ok}')")
    block.execute("savepoint s")
    for bad in ("insert into a values (6, 'sad', null)", "select 'sad'::mood"):
        with refused("22P02"):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute("insert into a values (7, 'ok', '{happy}')")
    block.execute("commit")
    for session in sessions:
        assert labels(session) == ["ok", "happy"]
        assert rows(session, "select id, m from a where id < 10 order by id") == [
            (1, "ok"),
            (2, "happy"),
            (3, "ok"),
            (5, "happy"),
            (7, "ok"),
        ]
        with refused("22P02"):
            session.execute("insert into a values (8, 'sad', null)")
    assert is_at_rest(other)
    assert jobs(other)[-1] == ("succeeded", "")
    assert inspect(block.node) == []


VIOLATIONS = {
    "row": "insert into a values (20, 'sad', null)",
    "changed row": "update a set m = 'sad' where id = 1",
    "element": "insert into a values (20, null, '{ok,sad}')",
    "row of a table that was empty": "insert into b values ('sad')",
    "many rows": f"insert into a select i, 'sad', null from generate_series(100, {BULK}) g (i)",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bad", VIOLATIONS.values(), ids=VIOLATIONS)
def test_row_of_another_session_with_the_value_fails_the_block(sessions: Sessions, level: str, bad: str):
    block, other = sessions
    other.execute("update a set m = 'ok' where id = 3")
    begin(block, level)
    block.execute("insert into a values (30, 'ok', null)")
    block.execute(DROP)
    other.execute(bad)
    with pytest.raises(errors.SerializationFailure) as caught:
        block.execute("commit")
    assert 'value "sad" of type mood is needed for a row of a concurrent transaction: ' in str(caught.value)
    assert labels(other) == ["sad", "ok", "happy"]
    assert is_at_rest(other)
    assert rows(other, "select count(*) from a where id = 30") == [(0,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("bad", VIOLATIONS.values(), ids=VIOLATIONS)
def test_row_that_is_committed_after_the_value_is_gone_is_rejected(sessions: Sessions, bad: str):
    block, other = sessions
    other.execute("update a set m = 'ok' where id = 3")
    begin(other)
    other.execute("insert into a values (31, 'happy', null)")
    begin(block)
    block.execute(DROP)
    other.execute(bad)
    block.execute("commit")
    with refused("23514"):
        other.execute("commit")
    assert rows(other, "select count(*) from a") == [(3,)]
    assert labels(other) == ["ok", "happy"]
    assert inspect(block.node) == []


def test_row_that_is_written_before_and_committed_after_is_rejected(sessions: Sessions):
    block, other = sessions
    other.execute("update a set m = 'ok' where id = 3")
    begin(other)
    other.execute("insert into a values (20, 'sad', null)")
    begin(block)
    block.execute(DROP)
    block.execute("commit")
    with refused("22P02"):
        other.execute("commit")
    assert rows(other, "select count(*) from a") == [(3,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("end", ["rollback", "rollback to s"])
def test_value_is_back_after_rollback(sessions: Sessions, end: str):
    block, other = sessions
    begin(block)
    block.execute("savepoint s")
    block.execute("update a set m = 'ok' where id = 3")
    block.execute(DROP)
    block.execute("alter type mood add value 'sad' after 'happy'")
    block.execute("create index i on a (m, id)")
    block.execute(end)
    assert is_at_rest(other)
    if end == "rollback to s":
        block.execute("insert into a values (4, 'sad', null)")
        block.execute("commit")
    other.execute("insert into a values (5, 'sad', null)")
    assert labels(block) == labels(other) == ["sad", "ok", "happy"]
    kept = [(4,)] if end == "rollback to s" else []
    assert rows(other, "select id from a where m = 'sad' order by id") == [(3,), *kept, (5,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("made", ["create table c (m mood)", "truncate a"])
def test_rows_of_tables_that_are_the_blocks_own_are_checked(sessions: Sessions, made: str):
    block, other = sessions
    other.execute("update a set m = 'ok' where id = 3; insert into b values ('ok')")
    begin(block)
    block.execute(made)
    table, values = ("c (m)", "('ok')") if "create" in made else ("a (id, m)", "(9, 'ok')")
    block.execute(f"insert into {table} values {values}")
    block.execute("savepoint s")
    block.execute(f"insert into {table} values {values.replace('ok', 'sad').replace('9', '10')}")
    with refused("23514" if "create" in made else "22P02"):
        block.execute(DROP)
    block.execute("rollback to s")
    block.execute(DROP)
    with refused("22P02"):
        block.execute(f"savepoint s; insert into {table} values {values.replace('ok', 'sad')}")
    block.execute("rollback to s")
    block.execute("commit")
    assert labels(other) == ["ok", "happy"]
    assert is_at_rest(other)
    assert rows(other, f"select m from {table[0]}") == [("ok",)]
    assert inspect(block.node) == []


def test_value_goes_together_with_other_changes(sessions: Sessions):
    """Changes of the type and of its tables, before and after, some of which need states of their own."""
    block, other = sessions
    begin(block)
    block.execute("alter type mood add value 'meh' before 'ok'")
    block.execute("alter table a add column n mood default 'happy'")
    block.execute("update a set m = 'meh' where id = 3")
    block.execute(DROP)
    block.execute("create index i on a (m, id)")
    block.execute("alter table a add check (m <> 'happy' or id = 2)")
    block.execute("alter type mood rename value 'ok' to 'fine'")
    block.execute("alter table b alter m type text")
    other.execute("insert into b values ('happy')")
    other.execute("insert into a values (4, 'ok', null)")
    block.execute("commit")
    assert labels(other) == ["meh", "fine", "happy"]
    assert rows(other, "select id, m, n from a order by id") == [
        (1, "fine", "happy"),
        (2, "happy", "happy"),
        (3, "meh", "happy"),
        (4, "fine", "happy"),
    ]
    assert rows(other, "select m from b") == [("happy",)]
    with refused("23514"):
        other.execute("insert into a values (5, 'happy', null)")
    assert inspect(block.node) == []


NEW_VALUES = {
    "created": ("create type tone as enum ('low', 'high')",),
    "added": ("alter type known add value 'low'", "alter type known rename to tone"),
    "relabelled": (
        "create type tone as enum ('high', 'soft')",
        "alter type tone rename value 'soft' to 'low'",
        "alter type tone add value 'soft'",
    ),
}
EXPRESSIONS = (
    "alter table a add constraint k check (n <> 'low' or id < 100)",
    "create index pi on a (id) where n = 'low'",
    "create unique index ei on a ((n::text || id))",
    "alter table a add column g text generated always as (n::text || '!') stored",
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("made", NEW_VALUES.values(), ids=NEW_VALUES)
def test_expressions_over_values_that_are_new(sessions: Sessions, made: tuple[str, ...], level: str):
    """Other sessions evaluate them without knowing the type."""
    block, other = sessions
    other.execute("create type known as enum ('loud', 'high')")
    begin(block, level)
    block.execute("update a set m = 'ok' where id = 3")
    for statement in (*made, "alter table a add column n tone default 'low'"):
        block.execute(statement)
    block.execute("update a set n = 'high' where id = 2")
    for statement in EXPRESSIONS:
        block.execute(statement)
    other.execute("insert into a values (4, 'ok', null)")
    other.execute("update a set m = 'happy' where id = 1")
    other.execute(f"insert into a select -i, 'ok', null from generate_series(1, {BULK}) g (i)")
    block.execute("insert into a values (100, 'ok', null, 'high')")
    with refused("23514"):
        block.execute("savepoint s; update a set n = 'low' where id = 100")
    block.execute("rollback to s")
    block.execute("commit")
    assert rows(other, "select id, m, n, g from a where id > 0 order by id") == [
        (1, "happy", "low", "low!"),
        (2, "happy", "high", "high!"),
        (3, "ok", "low", "low!"),
        (4, "ok", "low", "low!"),
        (100, "ok", "high", "high!"),
    ]
    assert rows(other, "select id from a where n = 'low' and id between 0 and 10 order by id") == [(1,), (3,), (4,)]
    assert rows(other, "select count(*) from a where n::text || id = 'low-7'") == [(1,)]
    with refused("23514"):
        other.execute("insert into a values (101, 'ok', null, 'low')")
    assert inspect(block.node) == []


def test_violation_of_an_expression_over_new_values_fails_the_block(sessions: Sessions):
    block, other = sessions
    begin(block)
    for statement in (*NEW_VALUES["relabelled"], "alter table a add column n tone default 'low'", EXPRESSIONS[0]):
        block.execute(statement)
    other.execute("insert into a values (101, 'ok', null)")
    with pytest.raises(errors.SerializationFailure, match='constraint "k" is violated by a row'):
        block.execute("commit")
    assert is_at_rest(other)
    assert inspect(block.node) == []
