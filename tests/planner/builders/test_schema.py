"""CREATE SCHEMA and CREATE DATABASE."""

import pytest

from tests.planner.builders.world import World, changes


def test_a_schema_is_a_descriptor_with_an_owner():
    world = World("create schema o authorization ann")
    assert world.find("o", None).access.owner == "ann"
    assert changes(world.plan("create schema p")) == {"+Schema", "+Namespace"}


def test_what_is_there_anyway_gets_a_descriptor_when_something_is_said_of_it():
    world = World("create table t (a int)")
    assert world.names == ["t"]
    world.run("comment on schema public is 'ours'")
    world.run("grant usage on schema public to ann")
    assert world.names == ["t", "public"]
    assert [c.text for c in world.find("public", None).access.comments] == ["ours"]


def test_a_database_is_a_descriptor():
    world = World("create database other owner bob")
    assert world.find("other", None).access.owner == "bob"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("create schema public", "42P06"),
        ("create schema seachange", "42P06"),
        ("create schema pg_x", "42939"),
        ("create database seachange", "42P04"),
        ("create database other", "42P04"),
    ],
)
def test_names_that_are_taken(statement, code):
    assert World("create database other").code(statement) == code


def test_if_not_exists_says_so():
    plan = World("create schema o").run("create schema if not exists o")
    assert plan.notices == ('schema "o" already exists, skipping',)
    assert not plan.stages
