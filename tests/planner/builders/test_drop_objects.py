"""DROP of whole objects."""

import pytest

from tests.planner.builders.world import World, changes

SERIAL = "create table t (id serial primary key, a int)"
MOOD = "create type mood as enum ('sad', 'happy')"


def test_a_sequence_that_a_default_draws_from():
    world = World("create sequence s", "create table t (a int default nextval('s'))")
    assert world.code("drop sequence s") == "2BP01"
    plan = world.run("drop sequence s cascade")
    assert changes(plan) == {"-ColumnDefault", "-Sequence", "-SequenceSettings", "-Namespace", "-Owner"}
    assert world.find("t").columns[0].default is None


def test_a_type_with_its_columns():
    world = World(MOOD, "create table t (m mood, n int)", "create index i on t (m)", "create view v as select m from t")
    assert world.code("drop type mood") == "2BP01"
    plan = world.run("drop type mood cascade")
    assert {"-EnumType", "-EnumValue", "-EnumLabel", "-Column", "-SecondaryIndex", "-View"} <= changes(plan)
    assert world.names == ["t"]
    assert [c.name for c in world.find("t").visible_columns] == ["n"]


def test_a_schema_with_all_that_is_in_it_and_what_depends_on_it():
    world = World("create schema o")
    world.run("create table o.p (id int primary key); create type o.m as enum (); create sequence o.s")
    world.run("create table c (n int default nextval('o.s'), m o.m, p int references o.p)")
    world.run("create view v as select id from o.p")
    assert world.code("drop schema o") == "2BP01"
    plan = world.run("drop schema o cascade")
    assert world.names == ["c"]
    child = world.find("c")
    assert [c.name for c in child.visible_columns] == ["n", "p"]
    assert child.visible_columns[0].default is None
    assert not child.foreign_keys
    publications = [stage for stage in plan.stages if stage.publishes]
    assert len(publications) == 1


def test_objects_of_one_statement_do_not_stand_in_each_others_way():
    world = World("create table p (id int primary key)", "create table c (p int references p)")
    world.run("create view v as select p from c; create view w as select p from v")
    assert world.code("drop view v") == "2BP01"
    assert world.code("drop view w, v") is None
    assert world.code("drop table c, p") == "2BP01"
    world.run("drop view v, w; drop table p, c")
    assert not world.catalog.descriptors


def test_a_database_goes_with_its_entry():
    world = World("create database other")
    assert world.code("drop database seachange") == "55006"
    assert world.code("drop database nosuch") == "3D000"
    assert changes(world.run("drop database other")) == {"-Database", "-Namespace", "-Owner", "-Privileges"}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("drop schema public", "0A000"),
        ("drop schema nosuch", "3F000"),
        ("drop schema if exists nosuch", None),
        ("drop type if exists nosuch.x", None),
        ("drop sequence t", "42809"),
        ("drop type t", "2BP01"),
        ("drop type t_id_seq", "42704"),
        ("drop sequence t_id_seq", "2BP01"),
        ("drop sequence t_id_seq cascade", None),
    ],
)
def test_drop_of_a_missing_object_has_the_code_of_postgresql(statement, code):
    assert World(SERIAL).code(statement) == code


def test_what_a_transaction_wanted_of_a_table_that_it_drops_is_not_done():
    world = World(SERIAL)
    plan = world.run("alter table t add column b int; create unique index on t (a); drop table t")
    assert not [t for t in plan.change.targets if t.adds]
    assert not world.catalog.descriptors


def test_what_a_transaction_creates_and_drops_is_nothing():
    plan = World().run(f"create schema o; {MOOD}; create table o.t (m mood); drop schema o cascade; drop type mood")
    assert not plan.change.targets
