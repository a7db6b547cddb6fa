"""Schema changes, in a transaction block, of tables that the block has created or emptied: no other session sees their
rows, so any change runs to its end inside the block."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.support.judge import inspect

CREATE = "create table t (a int, b text, c int, d int)"
FEW = ["insert into t values (1, 'x', 1, 1), (2, 'y', 2, 2), (3, 'z', 3, 3)"]
# More than a statement keeps in memory, in two files of which rows are then removed.
MANY = [
    "insert into t select i, 'b' || i, i, 1 + i % 3 from generate_series(1, 11000) i",
    "insert into t select i, 'b' || i, i, 1 + i % 3 from generate_series(11001, 22000) i",
    "delete from t where a in (7, 8, 13000)",
    "update t set b = 'changed' where a in (9, 13001)",
]
ROWS = {"few rows": FEW, "many rows": MANY}
ROW_COUNTS = ["few rows", pytest.param("many rows", marks=pytest.mark.one_in(3))]

# Each a list of statements in a block, on top of the table and its rows.
CHANGES: dict[str, list[str]] = {
    "index": ["create index t_b on t (b)"],
    "unique index": ["create unique index t_a on t (a)"],
    "expression index": ["create index t_e on t ((a + 1)) where c > 1"],
    "covering index": ["create index t_b on t (b desc) include (c)"],
    "unique constraint": ["alter table t add unique (a, b)"],
    "primary key": ["alter table t add primary key (a)"],
    "another primary key": ["alter table t add primary key (a)", "alter table t alter primary key using columns (c)"],
    "primary key goes": ["alter table t add primary key (a)", "alter table t drop constraint t_pkey"],
    "type": ["alter table t alter column a type text using 'n' || a"],
    "type of a key": [
        "alter table t add primary key (a)",
        "create index t_b on t (b)",
        "alter table t alter column a type text using 'n' || a",
    ],
    "narrow type": ["alter table t alter column d type smallint"],
    "not null": ["alter table t alter column c set not null"],
    "check": ["alter table t add constraint positive check (a > 0)"],
    "check not valid": [
        "alter table t add constraint positive check (a > 0) not valid",
        "alter table t validate constraint positive",
    ],
    "foreign key": ["alter table t add foreign key (d) references p"],
    "foreign key to itself": ["alter table t add unique (a)", "alter table t add foreign key (d) references t (a)"],
    "foreign key between new tables": [
        "create table q (id int)",
        "insert into q values (1), (2), (3)",
        "alter table q add primary key (id)",
        "alter table t add foreign key (d) references q on delete cascade",
        "delete from q where id = 2",
        "drop table q cascade",
    ],
    "deferred foreign key": [
        "alter table t add constraint f foreign key (d) references p deferrable initially deferred",
        "update t set d = 2 where a = 1",
    ],
    "generated column": ["alter table t add column g int generated always as (a * 2) stored"],
    "generated column changes": [
        "alter table t add column g int generated always as (a * 2) stored",
        "create unique index t_g on t (g)",
        "alter table t alter column g set expression as (a * 3)",
    ],
    "serial column": [
        "alter table t add column s serial",
        "create unique index t_s on t (s)",
        # Which row has which number is not determined.
        "alter table t alter column s set default 0",
        "drop index t_s",
        "update t set s = 0",
        "create index t_s on t (s)",
    ],
    "constant column": ["alter table t add column k int not null default 5", "create index t_k on t (k)"],
    "column of a dropped name": [
        "alter table t drop column d",
        "alter table t add column d int default 4",
        "create index on t (d)",
    ],
    "several actions": [
        "alter table t add column k int default 5, alter column a type bigint, add check (a > 0), add unique (a)",
    ],
    "new table as": [
        "create table u as select a, b from t",
        "create unique index u_a on u (a)",
        "insert into t select a + 100000, b, a + 100000, 1 from u",
        "drop table u",
    ],
    "renamed": [
        "alter table t rename column a to aa",
        "create index t_aa on t (aa)",
        "alter table t rename column aa to a",
    ],
    "added and dropped again": ["create index t_b on t (b)", "drop index t_b", "create unique index t_b on t (b, a)"],
}
# Rows are written before, and after, in whatever shape the table has by then.
AFTER = [
    "insert into t (a, b, c, d) values (90001, 'after', 90001, 1)",
    "update t set b = 'updated' where c = 3",
    "delete from t where c = 5 or b = 'y'",
]
ASKED = [
    "select * from t order by c, b",
    "select count(*) from t where b = 'updated'",
    "select c from t where b >= 'u' order by c",
    "select indexdef from pg_indexes where tablename = 't' order by 1",
    "select conname, pg_get_constraintdef(oid) from pg_constraint where contype in ('c', 'f', 'u', 'p') order by 1",
    "select column_name, data_type, is_nullable from information_schema.columns where table_name = 't' order by 1",
]


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as session:
        session.execute("create table p (id int primary key)")
        session.execute("insert into p values (1), (2), (3)")
        yield session


def run(session: Session, statements: Sequence[str]) -> None:
    for statement in statements:
        session.execute(statement)


def ask(session: Session) -> list[list[tuple[Any, ...]]]:
    return [[tuple(row) for row in session.execute(query).rows] for query in ASKED]


def expected_of(session: Session, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """What is there after each statement was sent on its own."""
    run(session, statements)
    found = ask(session)
    session.execute("drop table t")
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_new_table_is_as_outside_of_a_block(node: Node, session: Session, change: str, rows: str):
    statements = [CREATE, *ROWS[rows], *CHANGES[change], *AFTER]
    expected = expected_of(session, statements)
    session.execute("begin")
    run(session, statements)
    assert ask(session) == expected
    session.execute("commit")
    assert ask(session) == expected
    assert inspect(node) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_an_emptied_table_is_as_outside_of_a_block(node: Node, session: Session, change: str, rows: str):
    statements = [*ROWS[rows], *CHANGES[change], *AFTER]
    before = [CREATE, "create index t_d on t (d)", "insert into t values (77, 'old', 77, 1)"]
    expected = expected_of(session, [*before, "truncate t", *statements])
    run(session, before)
    session.execute("begin")
    run(session, ["truncate t", *statements])
    assert ask(session) == expected
    session.execute("commit")
    assert ask(session) == expected
    assert inspect(node) == []


# Errors.

BROKEN: dict[str, tuple[list[str], str]] = {
    "unique index": (["create unique index t_d on t (d)"], "23505"),
    "unique constraint": (["alter table t add unique (d)"], "23505"),
    "primary key": (["alter table t add primary key (d)"], "23505"),
    "primary key with nulls": (["alter table t add primary key (c)"], "23502"),
    "not null": (["alter table t alter column c set not null"], "23502"),
    "check": (["alter table t add check (a < 100)"], "23514"),
    "foreign key": (["update t set d = 4 where a = 2", "alter table t add foreign key (d) references p"], "23503"),
    "foreign key to itself": (
        ["alter table t add unique (a)", "alter table t add foreign key (d) references t (a)"],
        "23503",
    ),
    "type": (["alter table t alter column b type int using b::int"], "22P02"),
    "narrow type": (["alter table t alter column a type smallint"], "22003"),
}
BREAKING = [
    "insert into t select i, 'b' || i, i, 1 from generate_series(1, {n}) i",
    "insert into t values (100000, 'x', null, 1)",
    "update t set d = 300000 where a = 3",
]


@pytest.mark.parametrize("n", [5, pytest.param(11_000, marks=pytest.mark.one_in(2))])
@pytest.mark.parametrize("change", BROKEN)
def test_rows_that_violate_a_constraint_fail_the_block(node: Node, session: Session, change: str, n: int):
    statements, code = BROKEN[change]
    before = [sql.format(n=n) for sql in BREAKING]
    # Only the case of a foreign key to itself needs the row without a parent.
    before = before if change == "foreign key to itself" else before[:2]
    session.execute("begin")
    run(session, [CREATE, *before, *statements[:-1]])
    with pytest.raises(errors.Error) as found:
        session.execute(statements[-1])
    assert found.value.sqlstate == code
    with pytest.raises(errors.Error) as found:
        session.execute("select 1")
    assert found.value.sqlstate == "25P02"
    session.execute("rollback")
    with pytest.raises(errors.UndefinedTable):
        session.execute("select * from t")
    assert inspect(node) == []


@pytest.mark.parametrize("n", [5, pytest.param(11_000, marks=pytest.mark.one_in(2))])
@pytest.mark.parametrize("change", BROKEN)
def test_a_savepoint_undoes_a_change_that_failed(node: Node, session: Session, change: str, n: int):
    statements, _ = BROKEN[change]
    session.execute("begin")
    run(session, [CREATE, *(sql.format(n=n) for sql in BREAKING[:2]), "create index t_b on t (b)", "savepoint s"])
    before = ask(session)
    run(session, ["update t set d = 7 where a = 4", "alter table t add column more int default 3"])
    session.execute("alter table t alter column d type text using 'd' || d")
    session.execute("rollback to s")
    if change == "foreign key to itself":
        session.execute(BREAKING[2])
    run(session, statements[:-1])
    with pytest.raises(errors.Error):
        session.execute(statements[-1])
    session.execute("rollback to s")
    assert ask(session) == before
    session.execute("commit")
    assert ask(session) == before
    assert inspect(node) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize("change", CHANGES)
def test_rollback_to_a_savepoint_undoes_a_change(node: Node, session: Session, change: str, rows: str):
    """At two depths; what follows is done to the table as it was before."""
    statements = [CREATE, *ROWS[rows], "create index t_d on t (d)"]
    expected = expected_of(session, [*statements, *AFTER])
    session.execute("begin")
    run(session, [*statements, "savepoint a"])
    run(session, CHANGES[change][:1])
    session.execute("savepoint b")
    run(session, [*CHANGES[change][1:], *AFTER])
    session.execute("rollback to b")
    session.execute("rollback to a")
    run(session, AFTER)
    assert ask(session) == expected
    session.execute("commit")
    assert ask(session) == expected
    assert inspect(node) == []


# Other sessions.


@pytest.fixture
def other_session(other: Node, session: Session) -> Iterator[Session]:
    """Of another node."""
    with closing(Session(other)) as other_session:
        yield other_session


def code_of(work: Callable[[], object]) -> str:
    try:
        work()
    except errors.Error as problem:
        return problem.sqlstate
    return ""


CHILDREN = {"few rows": 2, "many rows": 11_000}


@pytest.mark.parametrize("children", CHILDREN)
def test_a_parent_that_is_deleted_meanwhile_refuses_the_foreign_key(
    session: Session, other_session: Session, children: str
):
    session.execute("begin")
    session.execute(CREATE)
    session.execute(f"insert into t select i, '', i, 1 + i % 2 from generate_series(1, {CHILDREN[children]}) i")
    session.execute("alter table t add foreign key (d) references p")
    other_session.execute("delete from p where id = 2")
    assert code_of(lambda: session.execute("commit")) == "40001"


@pytest.mark.parametrize("children", CHILDREN)
def test_a_parent_cannot_be_deleted_by_a_transaction_from_before_the_foreign_key(
    node: Node, session: Session, other_session: Session, children: str
):
    other_session.execute("begin")
    other_session.execute("delete from p where id in (2, 3)")
    session.execute("begin")
    session.execute(CREATE)
    session.execute(f"insert into t select i, '', i, 1 + i % 2 from generate_series(1, {CHILDREN[children]}) i")
    session.execute("alter table t add foreign key (d) references p")
    session.execute("commit")
    assert code_of(lambda: other_session.execute("commit")) in ("40001", "23503")
    other_session.execute("delete from p where id = 3")
    assert inspect(node) == []


def test_a_new_table_can_be_referred_to_by_an_empty_one(node: Node, session: Session):
    session.execute("create table old (x int)")
    session.execute("begin")
    run(
        session, [CREATE, *FEW, "alter table t add primary key (a)", "alter table old add foreign key (x) references t"]
    )
    assert code_of(lambda: session.execute("insert into old values (4)")) == "23503"
    session.execute("rollback")
    run(session, ["begin", CREATE, *FEW, "alter table t add primary key (a)"])
    run(session, ["alter table old add foreign key (x) references t", "insert into old values (3)", "commit"])
    assert code_of(lambda: session.execute("delete from t where a = 3")) == "23503"
    assert inspect(node) == []


def test_nothing_is_seen_before_the_commit(session: Session, other_session: Session):
    session.execute("begin")
    run(session, [CREATE, *FEW, "create unique index t_a on t (a)"])
    assert code_of(lambda: other_session.execute("select * from t")) == "42P01"
    assert other_session.execute("select count(*) from pg_indexes where indexname = 't_a'").rows == [(0,)]
    session.execute("commit")
    assert other_session.execute("select b from t where a = 2").rows == [("y",)]
    assert code_of(lambda: other_session.execute("insert into t values (2, '', 2, 2)")) == "23505"


# What the changes of an emptied table make of a row that another transaction has inserted before they were committed.
LATE: dict[str, tuple[list[str], str, list[tuple[Any, ...]]]] = {
    "type": (["alter table t alter column a type text using 'n' || a"], "", [("n1",), ("n2",), ("n3",), ("n9",)]),
    "type of a key": (
        ["alter table t add primary key (a)", "alter table t alter column a type text using 'n' || a"],
        "",
        [("n1",), ("n2",), ("n3",), ("n9",)],
    ),
    # How the first conversion was made is not known any more.
    "type twice": (
        [
            "alter table t alter column a type text using 'n' || a",
            "alter table t alter column a type text using a || 'm'",
        ],
        "40001",
        [("n1m",), ("n2m",), ("n3m",)],
    ),
    "unique index": (["create unique index t_b on t (b)"], "23505", [(1,), (2,), (3,)]),
    "check": (["alter table t add check (c < 9)"], "23514", [(1,), (2,), (3,)]),
    "not null": (["alter table t alter column d set not null"], "23502", [(1,), (2,), (3,)]),
    "index": (["create index t_b on t (b)"], "", [(1,), (2,), (3,), (9,)]),
}


@pytest.mark.parametrize("case", LATE)
def test_a_row_inserted_at_a_snapshot_before_the_table_was_emptied_meets_its_changes(
    node: Node, session: Session, other_session: Session, case: str
):
    statements, code, expected = LATE[case]
    run(session, [CREATE, "insert into t values (77, 'old', 77, 1)"])
    run(other_session, ["begin isolation level repeatable read", "select * from t"])
    run(session, ["begin", "truncate t", *FEW, *statements, "commit"])
    other_session.execute("insert into t values (9, 'z', 9, null)")
    assert code_of(lambda: other_session.execute("commit")) == code
    assert session.execute("select a from t order by a").rows == expected
    assert inspect(node) == []


@pytest.mark.parametrize("rows", ROWS)
def test_rollback_to_a_savepoint_before_truncate_brings_the_rows_back(node: Node, session: Session, rows: str):
    run(session, [CREATE, "create index t_d on t (d)", "insert into t values (77, 'old', 77, 1)"])
    expected = ask(session)
    session.execute("begin")
    run(session, ["savepoint s", "truncate t", *ROWS[rows], *CHANGES["type of a key"], *AFTER])
    session.execute("rollback to s")
    assert ask(session) == expected
    session.execute("commit")
    assert ask(session) == expected
    assert inspect(node) == []


def test_a_change_of_a_new_table_can_be_cancelled(session: Session):
    session.execute("begin")
    session.execute(CREATE)
    session.execute("insert into t select i, 'b' || i, i, 1 from generate_series(1, 300000) i")
    session.execute("set local statement_timeout = '20ms'")
    with pytest.raises(errors.QueryCanceled):
        session.execute("create index t_b on t (b, a, c)")
    session.execute("rollback")
    assert inspect(session.node) == []
