"""RENAME TO, SET SCHEMA and OWNER TO."""

import pytest

from tests.planner.builders.world import World, changes

T = "create table t (id serial primary key, a int)"


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        ("create sequence x", "alter sequence x rename to y"),
        ("create type x as enum ()", "alter type x rename to y"),
        ("create view x as select 1 as a", "alter view x rename to y"),
        ("create table x (a int)", "alter table x rename to y"),
        ("create schema x", "alter schema x rename to y"),
        ("create database x", "alter database x rename to y"),
    ],
)
def test_another_name_is_another_entry_and_nothing_else(setup, statement):
    world = World(setup)
    plan = world.run(statement)
    assert changes(plan) == {"-Namespace", "+Namespace"}
    assert world.names == ["y"]
    assert len(plan.stages) == 1


def test_an_index_and_its_constraint_have_one_name():
    world = World(T)
    assert changes(world.run("alter index t_pkey rename to k")) == {"-IndexName", "+IndexName"}
    assert world.find("t").primary.name == "k"
    assert world.code("alter table t drop constraint t_pkey") == "42704"


def test_what_is_in_a_schema_is_found_under_its_new_name():
    world = World("create schema o; create table o.t (a int); create index i on o.t (a); create sequence o.s")
    world.run("alter schema o rename to n")
    assert world.find("t", "n").schema == world.find("s", "n").schema == "n"
    assert world.code("drop index n.i") is None
    assert world.code("drop index o.i") == "3F000"


def test_a_table_takes_its_indexes_and_sequences_into_another_schema():
    world = World(T, "create index i on t (a)", "create schema o")
    plan = world.run("alter table t set schema o; alter index o.i rename to j; create table i (a int)")
    assert changes(plan) >= {"-Namespace", "+Namespace", "-IndexName"}
    assert world.find("t", "o").secondary[0].name == "j"
    assert world.find("t_id_seq", "o")
    assert world.find("i")


def test_there_and_back_again_is_nothing():
    world = World(T, "create schema o")
    plan = world.run("alter table t set schema o; alter table o.t set schema public")
    assert not plan.change.targets


def test_two_tables_change_names():
    world = World("create table a (x int)", "create table b (y int)")
    world.run("alter table a rename to c; alter table b rename to a; alter table c rename to b")
    assert world.find("a").columns[0].name == "y"
    assert world.find("b").columns[0].name == "x"


def test_the_owner_of_a_table_owns_its_sequences():
    world = World(T, "create type m as enum ()")
    assert changes(world.run("alter table t owner to ann")) == {"-Owner", "+Owner"}
    assert world.find("t_id_seq").access.owner == world.find("t").access.owner == "ann"
    world.run("alter type m owner to bob")
    assert world.find("m").access.owner == "bob"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("alter schema public rename to x", "0A000"),
        ("alter database seachange rename to x", "0A000"),
        ("alter database nosuch rename to x", "3D000"),
        ("alter database other rename to seachange", "42P04"),
        ("alter table t rename column id to b", None),
        ("alter table t set schema o", None),
        ("alter view v2 rename to w", None),
        ("alter table nosuch owner to ann", "42P01"),
        ("alter type nosuch owner to ann", "42704"),
    ],
)
def test_invalid_change_of_an_object_has_the_code_of_postgresql(statement, code):
    world = World(T, "create view v as select a from t", "create view v2 as select a from v")
    world.run("create schema o; create database other")
    assert world.code(statement) == code


def test_what_a_view_reads_is_renamed_if_the_view_is_made_again():
    world = World(T, "create view v as select a from t")
    world.run("drop view v; alter table t rename to u; create view v as select a from u")
    assert world.find("v").relation_ids == (world.find("u").id,)
