"""Several schema changes in one transaction block that depend on each other, or meet in one table."""

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

SETUP = (
    "create type mood as enum ('sad', 'ok')",
    "create table a (id int primary key, x int, m mood)",
    "insert into a select i, i % 10, 'ok' from generate_series(1, 50) g (i)",
    "create table blank (id int primary key, a_id int, x int)",
)


def run(session: Session, *statements: str) -> None:
    for statement in statements:
        session.execute(statement)


def values(session: Session, sql: str) -> list[object]:
    return [value for (value,) in session.execute(sql).rows]


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_changes_over_own_rows_of_a_table_that_was_empty(
    sessions: tuple[Session, Session], nodes: tuple[Node, Node], level: str
):
    block, other = sessions
    run(
        block,
        f"begin isolation level {level}",
        "create unique index blank_x on blank (x)",
        "insert into blank select i, i, i * 10 from generate_series(1, 20) g (i)",
        "alter table blank alter x set not null",
        "alter table blank alter a_id type text using 'a' || a_id",
        "create unique index on blank (a_id)",
        "alter table blank add foreign key (id) references a",
        "create index on a (x)",
    )
    assert values(block, "select id from blank where a_id = 'a3'") == [3]
    with pytest.raises(errors.UniqueViolation):
        run(block, "savepoint s", "insert into blank values (21, 'a3', 300)")
    run(block, "rollback to s")
    assert values(other, "select count(*) from blank") == [0]
    run(block, "commit")
    assert values(other, "select id from blank where x = 30 and a_id = 'a3'") == [3]
    assert inspect(nodes[1]) == []


def test_block_that_relies_on_an_empty_table_fails_if_another_session_fills_it(
    sessions: tuple[Session, Session], nodes: tuple[Node, Node]
):
    block, other = sessions
    run(block, "begin", "create unique index on blank (x)", "insert into blank values (1, 1, 1)")
    run(other, "insert into blank values (2, 2, 1)")
    with pytest.raises(errors.SerializationFailure):
        run(block, "alter table blank alter x set not null", "commit")
    run(block, "rollback")
    assert values(other, "select id from blank") == [2]
    assert inspect(nodes[0]) == []


def test_change_of_a_table_that_new_tables_refer_to(sessions: tuple[Session, Session], nodes: tuple[Node, Node]):
    block, other = sessions
    run(
        block,
        "begin",
        "create table child (id int primary key, a_id int not null references a)",
        "alter table blank add foreign key (a_id) references a",
        "insert into child values (1, 7)",
        "create index a_x on a (x)",
        "alter table a add check (x < 100)",
    )
    # No part of the block is known to others, and no row of theirs is rejected for it.
    run(other, "delete from a where id = 8", "insert into a values (60, 6)", "insert into blank values (1, 999, 1)")
    with pytest.raises(errors.SerializationFailure):
        run(block, "commit")
    run(other, "delete from blank")
    run(
        block,
        "begin",
        "create table child (id int primary key, a_id int not null references a)",
        "insert into child values (1, 7)",
        "create index a_x on a (x)",
        "commit",
    )
    with pytest.raises(errors.StillReferenced):
        run(other, "delete from a where id = 7")
    assert inspect(nodes[1]) == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize(
    ("before", "column"),
    [
        ("alter type mood add value 'new'", "n mood default 'new'"),
        ("create type made as enum ('new', 'other')", "n made default 'new'"),
        ("alter type mood rename value 'sad' to 'new'", "n mood default 'new'"),
    ],
)
def test_others_write_while_an_index_has_enum_values_that_they_do_not_know(
    sessions: tuple[Session, Session], nodes: tuple[Node, Node], before: str, column: str, end: str
):
    block, other = sessions
    run(block, "begin", before, f"alter table a add column {column}", "create index a_n on a (n)")
    run(
        other,
        "insert into a values (60, 6, 'ok')",
        "insert into a select i, i, 'ok' from generate_series(61, 70) g (i)",
        "update a set x = -x where id < 5",
        "delete from a where id = 9",
    )
    assert values(other, "select count(*) from pg_attribute where attrelid = 'a'::regclass and attnum > 0") == [3]
    assert values(block, "select id from a where n = 'new' and id > 60 order by id") == list(range(61, 71))
    run(block, end)
    assert values(other, "select count(*) from a") == [60]
    if end == "commit":
        assert values(other, "select id from a where n = 'new' and id < 11 order by id") == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert inspect(nodes[0]) == []


def test_others_write_while_a_default_draws_from_a_sequence_of_the_block(
    sessions: tuple[Session, Session], nodes: tuple[Node, Node]
):
    block, other = sessions
    run(
        block,
        "begin",
        "create sequence numbers",
        "alter table a add column n int",
        "alter table a alter n set default nextval('numbers')",
        "create index on a (n)",
        "insert into a values (60, 6)",
    )
    run(other, "insert into a values (61, 6)")
    run(block, "commit")
    run(other, "insert into a values (62, 6)")
    assert values(other, "select n from a where id >= 60 order by id") == [1, None, 2]
    assert inspect(nodes[0]) == []


def test_constraint_is_validated_under_own_rows_with_a_new_column(
    sessions: tuple[Session, Session], nodes: tuple[Node, Node]
):
    block, other = sessions
    run(other, "alter table a add constraint small check (x < 9) not valid")
    run(block, "begin", "alter table a add column n int default 3", "update a set x = 8 where x = 9")
    run(block, "insert into a values (60, 6, 'ok', 4)", "alter table a validate constraint small", "commit")
    assert values(other, "select convalidated from pg_constraint where conname = 'small'") == [True]
    assert inspect(nodes[1]) == []
