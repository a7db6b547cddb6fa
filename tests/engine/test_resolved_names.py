"""SERIALIZABLE: names that a transaction has resolved, or looked for in vain, are part of what it has read."""

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session

SWAP = """alter table foo rename to foo_old; create table foo (id int primary key, n int);
    insert into foo select * from foo_old"""
TYPED = "insert into log select 1 where 'a' = 'a'::mood::text"


@pytest.fixture
def session(node: Node) -> Session:
    session = Session(node)
    session.execute("""create table foo (id int primary key, n int); create table log (id int primary key);
        create table bar (id int primary key, n int); create schema s; create view v as select id from bar;
        create type mood as enum ('a', 'b'); insert into bar values (7, 7)""")
    return session


def begin(session: Session, isolation: str = "serializable") -> None:
    session.execute(f"begin isolation level {isolation}")


def is_refused(session: Session) -> bool:
    try:
        session.execute("commit")
    except errors.SerializationFailure:
        return True
    return False


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("insert into foo values (1, 1)", SWAP),
        ("insert into foo values (1, 1)", "alter table foo rename to other"),
        ("insert into foo values (1, 1)", "alter table foo set schema s"),
        ("insert into log select 1 from bar", "alter table bar rename to other"),
        ("insert into log select 1 from public.bar", "drop view v; drop table bar; create table bar (id int)"),
        ("insert into log select id from v", "create or replace view v as select n as id from bar"),
        ("insert into log select id from v", "alter view v rename to w"),
        # The name means another relation, because one came that is found first.
        ("set search_path = s, public; insert into log select 1 from bar", "create table s.bar (id int)"),
        (TYPED, "alter type mood rename to temper"),
    ],
)
def test_a_commit_is_refused_when_a_name_means_something_else(
    session: Session, other: Node, statement: str, change: str
) -> None:
    # Also when its plan was made before.
    session.execute(f"begin; {statement}; rollback")
    begin(session)
    session.execute(statement)
    Session(other).execute(change)
    assert is_refused(session)


@pytest.mark.parametrize(
    "change",
    [
        "alter table foo add column more int",
        "create table other (id int)",
        "create index on foo (n)",
        "insert into foo values (2, 2)",
        "alter table log rename to logs",
        "create table s.foo (id int)",
    ],
)
def test_other_changes_are_no_conflict(session: Session, other: Node, change: str) -> None:
    begin(session)
    session.execute("insert into foo values (1, 1)")
    Session(other).execute(change)
    assert not is_refused(session)


def test_that_a_name_does_not_exist_is_read(session: Session, other: Node) -> None:
    begin(session)
    session.execute("savepoint a")
    with pytest.raises(errors.UndefinedTable):
        session.execute("select * from absent")
    session.execute("rollback to a; insert into log values (1)")
    Session(other).execute("create table absent (id int)")
    assert is_refused(session)


def test_the_swap_of_a_name_waits_for_nothing_below_serializable(session: Session, other: Node) -> None:
    begin(session, "read committed")
    session.execute("insert into foo values (1, 1)")
    Session(other).execute(SWAP)
    assert not is_refused(session)
    assert session.execute("select id from foo_old").rows == [(1,)]


def test_a_statement_by_itself_finds_the_table_of_that_name(session: Session, other: Node) -> None:
    """The conflict is met in the commit, after which the statement is run again."""
    session.execute("set default_transaction_isolation = serializable")
    Session(other).execute(SWAP)
    session.execute("insert into foo values (1, 1)")
    assert session.execute("select id from foo").rows == [(1,)]


def test_a_writer_that_resolved_a_name_does_not_refuse_its_change(session: Session, other: Node) -> None:
    """The check goes one way: who renames a table has read nothing of what was written to it."""
    renaming = Session(other)
    renaming.execute("begin; alter table foo rename to foo_old")
    begin(session)
    session.execute("insert into foo values (1, 1); commit")
    assert not is_refused(renaming)
