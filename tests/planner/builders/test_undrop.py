"""UNDROP TABLE: what the table refers to may have changed meanwhile."""

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
