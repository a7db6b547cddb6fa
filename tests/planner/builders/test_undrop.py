"""UNDROP TABLE: what the table refers to may have changed meanwhile."""

import pytest

from seachange.model.states import State
from tests.planner.builders.world import World


def test_a_foreign_key_comes_back_unproven_and_both_ends_know():
    world = World(
        "create table u (id bigint primary key); create table t (id bigint primary key references t, a bigint)",
        "alter table t add constraint f foreign key (a) references u, add constraint n check (a > 0) not valid",
        "drop table t",
    )
    plan = world.run("undrop table t")
    table = world.find("t")
    assert {key.name: key.state for key in table.foreign_keys} == {"t_id_fkey": State.PUBLIC, "f": State.ENFORCED}
    assert [check.state for check in table.checks] == [State.ENFORCED]
    assert set(plan.stages[-1].publishes) == {table.id, world.find("u").id}
    assert "NOT VALID" in plan.notices[0]


def test_a_foreign_key_to_what_is_gone_does_not_come_back():
    world = World(
        "create table u (id bigint primary key); create table t (id bigint primary key, a bigint references u)",
        "drop table t; drop table u",
    )
    plan = world.run("undrop table t")
    assert not world.find("t").foreign_keys
    assert plan.notices == ('foreign key "t_a_fkey" does not come back: the key that it refers to is gone',)
    assert world.code("alter table t add constraint t_a_fkey check (a > 0)") is None


def test_a_default_does_not_come_back_without_its_sequence():
    world = World("create table t (id serial primary key, a bigint generated always as identity)", "drop table t")
    plan = world.run("undrop table t")
    assert [(c.default, c.identity) for c in world.find("t").columns] == [(None, None)] * 2
    assert len(plan.notices) == 2


def test_what_cannot_come_back():
    world = World("create type mood as enum ('a'); create table t (id int primary key, m mood)", "drop table t")
    world.run("drop type mood")
    assert world.code("undrop table t") == "0A000"
    world = World("create table t (id int primary key); create index i on t (id)", "drop table t")
    world.run("create table x (id int primary key); create index i on x (id)")
    assert world.code("undrop table t") == "42P07"
    world = World("create schema z; create table z.t (id int primary key)", "drop schema z cascade")
    assert world.code("undrop table z.t") == "3F000"
    world.run("create schema z")
    assert world.code("undrop table z.t") is None


def test_a_table_comes_back_once():
    world = World("create table t (id int primary key)", "drop table t")
    assert world.code("undrop table t; alter table t rename to s; undrop table t") == "42P01"
    world.run("undrop table t")
    world.run("alter table t rename to s")
    assert world.code("undrop table t") == "42P01"


@pytest.mark.parametrize(
    "change",
    [
        "alter table t add column e int not null",
        "alter table t add unique (a)",
        "create index on t (a)",
        "truncate t",
        "alter type mood drop value 'a'",
    ],
)
def test_rows_that_come_back_cannot_be_looked_at_before(change):
    world = World(
        "create type mood as enum ('a')", "create table t (id int primary key, a int, m mood)", "drop table t"
    )
    assert world.code(f"undrop table t; {change}") == "0A000"


def test_what_needs_no_rows_can_be_done_at_once():
    world = World("create table t (id int primary key)", "drop table t")
    world.run(
        "undrop table t; alter table t rename to s; comment on table s is 'back'; create view v as select * from s"
    )
    assert set(world.names) == {"s", "v"}
    world.run("drop table s cascade; create table n (a int)")
    assert not world.plan("undrop table s; drop table s").stages


def test_ids_and_layouts_come_back():
    """Files are in the layouts of the past, and an id that was used means a column that is in them."""
    world = World("create table t (id int primary key, a int, b int)", "alter table t drop column b")
    before = world.find("t")
    world.run("drop table t")
    world.run("undrop table t")
    assert world.find("t").version == before.version + 1
    world.run("alter table t add column c int")
    table = world.find("t")
    assert table.layouts[: len(before.layouts)] == before.layouts
    assert [(c.id, c.name) for c in table.columns] == [(1, "id"), (2, "a"), (4, "c")]
