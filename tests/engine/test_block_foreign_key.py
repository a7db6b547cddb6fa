"""Foreign keys over rows inside a transaction block: they check the block at once, others from its COMMIT on."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, Sessions, begin, is_valid, refused, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

ADD = "alter table c add constraint f foreign key (p) references p"
BULK = 3_000
SETUP = (
    "create table p (id int primary key, u int)",
    "create table c (id int primary key, p int)",
    "insert into p values (1, 1), (2, 2), (3, 3)",
    "insert into c values (1, 1), (2, 2)",
)


def children(session: Session) -> list[tuple[int, int]]:
    return rows(session, "select id, p from c order by id")


def keys(session: Session) -> list[tuple[str, str]]:
    """The foreign keys of the published version, hidden ones included, with their states."""
    session.node.read_head()
    table = next(t for t in session.node.epoch.schemas.newest.by_id.values() if t.name == "c")
    return [(key.name, key.state.value) for key in table.foreign_keys]


def fails_for(session: Session, sql: str, *words: str) -> None:
    with pytest.raises(errors.SerializationFailure) as caught:
        session.execute(sql)
    assert 'constraint "f" is violated' in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("level", LEVELS)
def test_missing_parents_are_inserted_before(sessions: Sessions, level: str):
    block, other = sessions
    other.execute("insert into c values (9, 9), (8, 8)")
    begin(block, level)
    block.execute("delete from c where id = 8")
    block.execute("savepoint s")
    with refused("23503"):
        block.execute(ADD)
    block.execute("rollback to s")
    block.execute("insert into p values (9, 9)")
    block.execute(ADD)
    block.execute("savepoint s")
    for bad in ("insert into c values (10, 10)", "update c set p = 10 where id = 1", "delete from p where id = 9"):
        with refused("23503"):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute("insert into c values (11, 3)")
    other.execute("insert into c values (12, 1)")
    block.execute("commit")
    assert children(other) == [(1, 1), (2, 2), (9, 9), (11, 3), (12, 1)]
    for bad in ("insert into c values (10, 10)", "delete from p where id = 3"):
        with refused("23503"):
            other.execute(bad)
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_many_rows_of_both_tables(sessions: Sessions, level: str):
    block, other = sessions
    other.execute(f"insert into c select i, i from generate_series(100, {100 + BULK}) g (i)")
    begin(block, level)
    block.execute(f"insert into p select i, i from generate_series(10, {100 + BULK}) g (i)")
    block.execute(f"insert into c select -i, i from generate_series(10, {BULK}) g (i)")
    block.execute("savepoint s")
    block.execute("update c set p = p + 1 where id > 0")
    with refused("23503"):
        block.execute(ADD)
    block.execute("rollback to s")
    block.execute(f"{ADD} on delete cascade")
    block.execute("savepoint s")
    with refused("23503"):
        block.execute(f"insert into c select -i, i from generate_series({BULK + 1}, 9000) g (i)")
    block.execute("rollback to s")
    block.execute("delete from p where id between 1000 and 2999")
    other.execute("insert into c values (50, 1)")
    block.execute("commit")
    assert rows(other, "select count(*) from c where p between 1000 and 2999") == [(0,)]
    assert rows(other, "select count(*) from c where p in (500, 50)") == [(3,)]
    assert inspect(block.node) == []


VIOLATIONS = {
    "child": ("insert into c values (20, 20)", "(p)=(20)"),
    "changed child": ("update c set p = 20 where id = 1", "(p)=(20)"),
    "parent": ("delete from p where id = 2", "(id)=(2)"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("bad", "words"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_violation_by_another_session_fails_the_block(sessions: Sessions, level: str, bad: str, words: str):
    block, other = sessions
    begin(block, level)
    block.execute("insert into p values (30, 30)")
    block.execute(f"{ADD} on delete cascade")
    other.execute(bad)
    fails_for(block, "commit", words)
    assert keys(other) == []
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("before", [True, False], ids=["row then key", "key then row"])
@pytest.mark.parametrize("action", ["", " on delete cascade"])
def test_own_rows_and_those_of_others_violate_it_together(sessions: Sessions, level: str, before: bool, action: str):
    block, other = sessions
    meetings = [
        ("insert into c values (10, 3)", "delete from p where id = 3", "(p)=(3)"),
        ("delete from p where id = 3", "insert into c values (10, 3)", "(id)=(3)"),
    ]
    for own, others, words in meetings:
        begin(block, level)
        for statement in [own, f"{ADD}{action}"] if before else [f"{ADD}{action}", own]:
            block.execute(statement)
        other.execute(others)
        fails_for(block, "commit", words)
        other.execute("delete from c where id = 10")
        other.execute("insert into p values (3, 3) on conflict do nothing")
    begin(block, level)
    block.execute(f"{ADD}{action}")
    block.execute("delete from p where id = 3")
    other.execute("insert into c values (10, 2)")
    block.execute("commit")
    assert children(other) == [(1, 1), (2, 2), (10, 2)]
    assert inspect(block.node) == []


def test_rows_newer_than_the_snapshot_are_found(sessions: Sessions):
    """They were written before any writer knew of the foreign key."""
    block, other = sessions
    begin(block, "repeatable read")
    assert len(children(block)) == 2
    other.execute("insert into c values (10, 3)")
    block.execute(f"{ADD} on delete cascade")
    block.execute("savepoint s")
    fails_for(block, "delete from p where id = 3", "(id)=(3)")
    block.execute("rollback to s")
    block.execute("commit")
    other.execute("alter table c drop constraint f")
    begin(block, "repeatable read")
    assert len(children(block)) == 3
    other.execute("delete from c where p = 2")
    other.execute("delete from p where id = 2")
    block.execute(ADD)
    block.execute("insert into c values (11, 2)")
    fails_for(block, "commit", "(p)=(2)")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("late", "own"),
    [
        ("insert into c values (10, 3)", "delete from p where id = 3"),
        ("delete from p where id = 3", "insert into c values (10, 3)"),
    ],
)
def test_writer_that_began_before_is_checked_after_commit(sessions: Sessions, level: str, late: str, own: str):
    """The rows of the block are not known to the writer, nor those of the writer to the block."""
    block, other = sessions
    block.execute("set seachange.drain_timeout = '50ms'")
    begin(block, level)
    # Its locks are on other rows than those of the writer.
    block.execute("select 1")
    begin(other)
    other.execute(late)
    block.execute(ADD)
    if own.startswith("insert"):
        block.execute(own)
    block.execute("commit")
    if own.startswith("insert"):
        with refused("23503"):
            other.execute("commit")
    else:
        other.execute("commit")
        with refused("23503"):
            block.execute(own)
    assert inspect(block.node) == []


ACTIONS = {
    "on delete cascade": [(1, 1)],
    "on delete set null": [(1, 1), (2, None)],
    "on update cascade": [(1, 1), (2, 7)],
}


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_are_taken_in_the_block(sessions: Sessions, action: str):
    block, other = sessions
    begin(block)
    block.execute(f"{ADD} {action}")
    block.execute("delete from p where id = 2" if "delete" in action else "update p set id = 7 where id = 2")
    assert children(block) == ACTIONS[action]
    assert len(children(other)) == 2
    block.execute("commit")
    assert children(other) == ACTIONS[action]
    assert inspect(block.node) == []


def test_key_that_is_not_valid_rejects_no_row_of_others_before_commit(sessions: Sessions):
    block, other = sessions
    begin(block)
    block.execute("insert into c values (9, 9)")
    block.execute(f"{ADD} not valid")
    block.execute("savepoint s")
    with refused("23503"):
        block.execute("insert into c values (10, 10)")
    block.execute("rollback to s")
    other.execute("insert into c values (20, 20)")
    block.execute("commit")
    assert not is_valid(other, "f")
    with refused("23503"):
        other.execute("insert into c values (21, 21)")
    begin(block)
    block.execute("delete from c where id in (9, 20)")
    block.execute("alter table c validate constraint f")
    block.execute("commit")
    assert is_valid(other, "f")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_keys_of_several_forms_in_one_block(sessions: Sessions, level: str):
    """To a key of the same block, to the same table, of a new column, of a new table; and what a savepoint undoes."""
    block, other = sessions
    begin(block, level)
    block.execute("insert into p values (4, 40)")
    block.execute("alter table p add unique (u)")
    block.execute("update c set p = 40 where id = 2")
    block.execute("alter table c add constraint f foreign key (p) references p (u)")
    block.execute("alter table c add column parent int references c")
    block.execute("alter table c add constraint own foreign key (p) references p (u) on delete cascade")
    block.execute("create table n (id int primary key, p int references p (u))")
    block.execute("insert into n values (1, 40)")
    block.execute("savepoint s")
    block.execute("alter table c add constraint undone foreign key (id) references c")
    block.execute("rollback to s")
    for bad in ("insert into c values (5, 4)", "insert into c values (5, 1, 5000)", "delete from p where u = 40"):
        with refused("23503"):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute("insert into c values (6, 3, 6)")
    other.execute("insert into c values (7, 1)")
    block.execute("commit")
    assert rows(other, "select id, p, parent from c order by id") == [
        (1, 1, None),
        (2, 40, None),
        (6, 3, 6),
        (7, 1, None),
    ]
    assert keys(other) == [("f", "PUBLIC"), ("c_parent_fkey", "PUBLIC"), ("own", "PUBLIC")]
    for bad in ("insert into c values (8, 4)", "delete from p where u = 40"):
        with refused("23503"):
            other.execute(bad)
    assert inspect(block.node) == []


def test_rollback_leaves_nothing(sessions: Sessions):
    block, other = sessions
    begin(block)
    block.execute(ADD)
    assert keys(other) == [("f", "VALIDATING")]
    block.execute("rollback")
    assert keys(other) == []
    other.execute("insert into c values (20, 20)")
    other.execute("delete from p where id = 1")
    other.execute("drop table p")
    assert inspect(block.node) == []


def test_serializable_row_refers_by_a_primary_key_under_construction(sessions: Sessions):
    block, other = sessions
    block.execute("create table tree (id int primary key, up int)")
    block.execute("insert into tree values (1, null), (2, 1), (3, 1)")
    begin(other, "serializable")
    assert rows(other, "select id from tree where up = 1 order by id") == [(2,), (3,)]
    begin(block)
    block.execute("alter table tree add column twice int generated always as (id * 2) stored")
    block.execute("alter table tree add constraint of_tree foreign key (up) references tree")
    other.execute("update tree set up = 2 where id = 3")
    other.execute("insert into tree values (4, 3)")
    other.execute("commit")
    block.execute("commit")
    assert rows(other, "select * from tree order by id") == [(1, None, 2), (2, 1, 4), (3, 2, 6), (4, 3, 8)]
    assert inspect(block.node) == []


def test_serializable_writers_do_not_conflict_by_rows_that_violate_it_before_commit(nodes: tuple[Node, Node]):
    with (
        closing(Session(nodes[0])) as block,
        closing(Session(nodes[0])) as one,
        closing(Session(nodes[1])) as other,
    ):
        begin(block)
        block.execute(ADD)
        for session, id_ in ((one, 7), (other, 8)):
            begin(session, "serializable")
            session.execute(f"insert into c values ({id_}, 9)")
        one.execute("commit")
        other.execute("commit")
        fails_for(block, "commit", "9")
        assert children(one) == [(1, 1), (2, 2), (7, 9), (8, 9)]
