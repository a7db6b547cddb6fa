"""Labels (owner, privileges, comments) that a block changes beside other sessions: neither side's changes are lost.

A label waits for no lock, so the table may get another shape while the block is open, and labels while another block
changes its shape.
"""

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, ONE_TABLE, begin, ids, indexes, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

SETUP = (
    *ONE_TABLE,
    "create role reader",
    "create table b (id int primary key, x int, y int)",
    "insert into b values (1, 1, 1)",
)
OWN = {
    "index": "create index j on a (x)",
    "column": "alter table a add column z int",
    "not null": "alter table a alter column y set not null",
}
OTHERS = {
    "index": "create index i on a (y)",
    "column": "alter table a add column w int default 3",
}


def state(session: Session) -> set[str]:
    """Columns, indexes and privileges of the table."""
    found = rows(session, "select column_name, is_nullable from information_schema.columns where table_name = 'a'")
    names = {f"{name} {nullable}" for name, nullable in found}
    grants = "select privilege_type from information_schema.role_table_grants where grantee = 'reader'"
    return names | indexes(session) | {name for (name,) in rows(session, grants)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("own", OWN)
def test_change_after_a_grant_is_made_to_the_newest_version(
    sessions: tuple[Session, Session], level: str, own: str, other: str
):
    block, another = sessions
    begin(block, level)
    block.execute("grant select on a to reader")
    block.execute("insert into a values (300, 5, 'own')")
    another.execute(OTHERS[other])
    block.execute(OWN[own])
    block.execute("commit")
    known = {"id NO", "x YES", "y NO" if own == "not null" else "y YES", "SELECT"}
    known |= {"index": {"j"}, "column": {"z YES"}}.get(own, set())
    known |= {"index": {"i"}, "column": {"w YES"}}[other]
    assert state(another) == known
    assert ids(another, "x = 5 and id > 200") == [300]
    assert inspect(another.node) == []


GRANT = "grant select on a to reader"
# Statements of the block, and those of another session in between, with a bar; and what must be there in the end.
SCRIPTS = {
    "index of a granted table": (
        (GRANT, "create index jb on b (x)", "| create index i on a (y)", "create index jb2 on b (y)"),
        {"i", "SELECT"},
    ),
    "index of a granted table, with a savepoint": (
        (GRANT, "savepoint s", "create index jb on b (x)", "| create index i on a (y)", "rollback to s"),
        {"i", "SELECT"},
    ),
    "index after a change that was undone": (
        (
            GRANT,
            "savepoint s",
            "create index j on a (x)",
            "rollback to s",
            "| create index i on a (y)",
            "create index jb on b (x)",
            "insert into a values (300, 5, 'r1')",
        ),
        {"i", "SELECT"},
    ),
    "two grants": (
        (GRANT, "grant insert on a to reader", "| create index i on a (y)", "insert into a values (300, 5, 'r1')"),
        {"i", "SELECT", "INSERT"},
    ),
    "grant by another": (
        ("create index i on a (y)", f"| {GRANT}", "create index j on a (x)"),
        {"i", "j", "SELECT"},
    ),
    "two grants by another": (
        ("create index i on a (y)", f"| {GRANT}", "| grant insert on a to reader", "insert into b values (2, 2, 2)"),
        {"i", "SELECT", "INSERT"},
    ),
    "grant by another, with a savepoint": (
        ("create index i on a (y)", "savepoint s", "create index j on a (x)", f"| {GRANT}", "rollback to s"),
        {"i", "SELECT"},
    ),
    "revoke by another": (
        (f"| {GRANT}", "create index i on a (y)", "| revoke select on a from reader", "create index j on a (x)"),
        {"i", "j"},
    ),
    "changes that were undone one by one": (
        (
            "alter table a add column z int",
            "savepoint s",
            "alter table a add column w int",
            "savepoint t",
            "create index i on a (x)",
            f"| {GRANT}",
            "rollback to t",
            "rollback to s",
        ),
        {"z YES", "SELECT"},
    ),
    "grant with the newest definition": (
        ("update a set x = 0 where x is null", f"| {GRANT}", "| create index i on a (y)", "create index j on a (x)"),
        {"i", "j", "SELECT"},
    ),
    "the same grant by both": (
        (GRANT, "create index i on a (y)", f"| {GRANT}", "create index j on a (x)"),
        {"i", "j", "SELECT"},
    ),
    "rows that go back": (
        (
            GRANT,
            "insert into a values (300, 5, 'r1')",
            "savepoint s",
            "| create index i on a (y)",
            "alter table a add column z int",
            "rollback to s",
        ),
        {"i", "SELECT"},
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_labels_and_changes_of_two_sessions_are_both_there(sessions: tuple[Session, Session], level: str, name: str):
    block, other = sessions
    statements, expected = SCRIPTS[name]
    for number, statement in enumerate(statements):
        if number == (statements[0][0] == "|"):
            begin(block, level)
        (other if statement[0] == "|" else block).execute(statement.lstrip("| "))
    block.execute("commit")
    assert state(other) == {"id NO", "x YES", "y YES", *expected}
    inserted = any("(300" in statement for statement in statements)
    assert ids(other, "y = 'r1'") == [1, *([300] if inserted else [])]
    assert inspect(other.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_a_granted_table_meet_a_new_constraint(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    begin(block, level)
    block.execute(GRANT)
    other.execute("alter table a add constraint small check (x < 10)")
    with pytest.raises(errors.CheckViolation):
        block.execute("insert into a values (300, 50, 'large'); commit")
    block.execute("rollback")
    assert ids(other, "x >= 10") == []


# What another session does to the table and its rows, and the rows that the block sees then.
SEEN = {
    "column": (("alter table a add column w int default 3", "insert into a values (300, 1, 'new', 4)"), [300]),
    "type": (("alter table a alter column x type text using x::text", "insert into a values (300, 'x', 'new')"), [300]),
    "key": (("alter table a alter primary key using columns (id, y)", "insert into a values (300, 1, 'new')"), [300]),
    "rows gone": (("truncate a", "insert into a values (300, 1, 'new')"), [300]),
    # The block reads as of the last version that its labels fit.
    "column gone": (("alter table a drop column x cascade", "insert into a values (300, 'new')"), []),
    "table gone": (("drop table a",), []),
}


@pytest.mark.parametrize("has_rows", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", SEEN)
def test_labelled_table_is_read_after_another_session_has_changed_it(
    sessions: tuple[Session, Session], name: str, has_rows: bool
):
    block, other = sessions
    statements, seen = SEEN[name]
    # Not of a table that loses its rows: that waits for writers.
    is_written = has_rows and name not in ("rows gone", "table gone")
    begin(block)
    block.execute("comment on {} is 'mine'".format("column a.x" if name == "column gone" else "table a"))
    if is_written:
        block.execute("insert into a (id, y) values (299, 'own')")
    block.execute("savepoint s")
    for statement in statements:
        other.execute(statement)
    own = [299] if is_written else []
    for _ in range(2):
        assert ids(block, "id > 290") == own + seen
        block.execute("rollback to s")
    if seen:
        block.execute("commit")
        assert ids(other, "id > 290") == own + seen
    else:
        with pytest.raises(errors.SerializationFailure):
            block.execute("insert into a (id, y) values (301, 'late'); commit")
    assert inspect(other.node) == []


def test_privilege_is_not_granted_before_the_commit(sessions: tuple[Session, Session]):
    """Although a change in several stages takes the grant along."""
    block, other = sessions
    begin(block)
    block.execute(GRANT)
    block.execute("create index i on a (x)")
    other.execute("set role reader")
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute("select count(*) from a")
    block.execute("commit")
    other.execute("select count(*) from a")
