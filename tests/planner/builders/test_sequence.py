"""CREATE and ALTER SEQUENCE, and what draws from sequences."""

import pytest

from tests.planner.builders.world import World, changes

BIGGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ("", (1, BIGGEST, 1)),
        ("increment -1", (-(2**63), -1, -1)),
        ("as smallint", (1, 2**15 - 1, 1)),
        ("minvalue 5 maxvalue 9", (5, 9, 5)),
        ("no minvalue maxvalue 9 start 3", (1, 9, 3)),
    ],
)
def test_limits_of_a_sequence_default_by_type_and_direction(options, limits):
    sequence = World(f"create sequence s {options}").find("s")
    assert (sequence.minimum, sequence.maximum, sequence.start) == limits


@pytest.mark.parametrize(
    ("first", "then", "limits"),
    [
        ("minvalue -5 start 1 maxvalue 9", "no maxvalue", (-5, BIGGEST)),
        ("minvalue -5 start 1 maxvalue 9", "no minvalue", (1, 9)),
        ("", "as smallint", (1, 2**15 - 1)),
        ("maxvalue 9", "as smallint", (1, 9)),
        ("as smallint maxvalue 9", "as bigint", (1, 9)),
        ("as smallint", "as bigint maxvalue 7", (1, 7)),
    ],
)
def test_limits_follow_the_type_and_what_is_said(first, then, limits):
    world = World(f"create sequence s {first}")
    plan = world.run(f"alter sequence s {then}")
    assert changes(plan) == {"-SequenceSettings", "+SequenceSettings"}
    sequence = world.find("s")
    assert (sequence.minimum, sequence.maximum) == limits


def test_every_restart_is_another_run():
    world = World("create sequence s start 5")
    assert changes(world.run("alter sequence s restart")) == {"+SequenceStart"}
    assert (world.find("s").restart, world.find("s").run) == (5, 1)
    world.run("alter sequence s restart with 8")
    world.run("alter sequence s start 6 restart")
    assert (world.find("s").restart, world.find("s").run) == (6, 3)


def test_defaults_draw_by_id_and_so_follow_no_name():
    world = World("create schema o; create sequence o.s; create table t (a int default nextval('o.s'), b serial)")
    sequence, own = world.find("s", "o"), world.find("t_b_seq")
    defaults = [column.default for column in world.find("t").visible_columns]
    assert defaults == [f"(nextval({sequence.id}))", f"nextval({own.id})"]
    plan = world.run("alter sequence o.s rename to r; alter sequence t_b_seq rename to q")
    assert changes(plan) == {"-Namespace", "+Namespace"}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("alter sequence s restart with 0", "22023"),
        ("alter sequence i_a_seq owned by none", "0A000"),
        ("alter sequence t_b_seq owned by none", None),
        ("alter sequence o.r owned by t.a", "55000"),
        ("alter sequence s owned by t.a", None),
        ("alter sequence s owned by t.nosuch", "42703"),
        ("alter sequence t restart", "42809"),
        ("create sequence t", "42P07"),
    ],
)
def test_invalid_sequence_statement_has_the_code_of_postgresql(statement, code):
    world = World("create sequence s", "create table t (a int, b serial)", "create schema o; create sequence o.r")
    world.run("create table i (a int generated always as identity)")
    assert world.code(statement) == code


def test_a_sequence_goes_with_its_owner():
    world = World("create sequence s", "create table t (a int, b int)", "alter sequence s owned by t.a")
    world.run("alter table t drop column a")
    assert world.names == ["t"]


def test_the_sequence_of_an_identity_column_can_be_named():
    world = World("create table t (a int not null); create schema o")
    add = "alter table t alter column a add generated always as identity (sequence name {})"
    assert world.code(add.format("o.numbers")) == "55000"
    assert world.code(add.format("t")) == "42P07"
    world.run(add.format("public.numbers"))
    assert world.code("create sequence numbers") == "42P07"
