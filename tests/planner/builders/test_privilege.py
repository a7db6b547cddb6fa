"""GRANT and REVOKE."""

import pytest

from tests.planner.builders.world import World, changes

T = "create table t (a int)"


def _held(world, name="t"):
    return {p.role: (p.privileges, p.grantable) for p in world.find(name).access.privileges}


def test_grants_add_up_and_revokes_take_away():
    world = World(T)
    assert changes(world.run("grant update, select on t to ann, bob")) == {"+Privileges"}
    assert changes(world.run("grant insert on t to ann with grant option")) == {"-Privileges", "+Privileges"}
    assert _held(world) == {
        "ann": (("SELECT", "INSERT", "UPDATE"), ("INSERT",)),
        "bob": (("SELECT", "UPDATE"), ()),
    }
    assert not world.run("grant select on t to ann").change.targets
    world.run("revoke grant option for insert on t from ann cascade")
    assert _held(world)["ann"] == (("SELECT", "INSERT", "UPDATE"), ())
    world.run("revoke all on t from bob; revoke select on t from ann")
    assert _held(world) == {"ann": (("INSERT", "UPDATE"), ())}


def test_all_is_all_that_the_kind_of_object_knows():
    world = World(T, "create sequence s", "create view v as select a from t")
    world.run("grant all on t to ann; grant all on s to ann; grant all on v to ann")
    assert _held(world)["ann"] == _held(world, "v")["ann"]
    assert len(_held(world)["ann"][0]) == 7
    assert _held(world, "s")["ann"][0] == ("SELECT", "UPDATE", "USAGE")


def test_all_in_a_schema():
    world = World("create schema o; create table o.a (x int); create sequence o.s; create table b (x int)")
    world.run("create view o.v as select x from o.a")
    world.run("grant select on all tables in schema o to ann")
    granted = [d.name for d in world.catalog.descriptors.values() if d.access.privileges]
    assert granted == ["a", "v"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("grant select on t to public with grant option", "0LP01"),
        ("grant insert on s to ann", "0LP01"),
        ("grant select on nosuch to ann", "42P01"),
        ("grant usage on type nosuch to ann", "42704"),
        ("grant select on all tables in schema nosuch to ann", "3F000"),
        ("grant connect on database seachange to ann", None),
        ("grant connect on database nosuch to ann", "3D000"),
        ("revoke select on t from no_such_role", None),
    ],
)
def test_grant_on_a_missing_object_has_the_code_of_postgresql(statement, code):
    assert World(T, "create sequence s").code(statement) == code
