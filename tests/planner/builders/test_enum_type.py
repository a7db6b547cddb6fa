"""Enum types and their values."""

import pytest

from seachange.model.change.elements import CheckConstraint
from seachange.model.change.ops import SetState, Validate
from seachange.model.states import State
from tests.planner.builders.world import World, changes

MOOD = "create type mood as enum ('sad', 'ok', 'happy')"
T = "create table t (id int primary key, m mood)"


def _labels(world):
    return [value.label for value in world.find("mood").values]


def test_values_stand_in_the_order_in_which_they_were_given():
    assert _labels(World(MOOD)) == ["sad", "ok", "happy"]


@pytest.mark.parametrize(
    ("where", "labels"),
    [
        ("", ["sad", "ok", "happy", "x"]),
        ("before 'sad'", ["x", "sad", "ok", "happy"]),
        ("after 'sad'", ["sad", "x", "ok", "happy"]),
        ("before 'happy'", ["sad", "ok", "x", "happy"]),
        ("after 'happy'", ["sad", "ok", "happy", "x"]),
    ],
)
def test_a_value_is_added_between_its_neighbours(where, labels):
    world = World(MOOD)
    before = {value.id: value.rank for value in world.find("mood").values}
    plan = world.run(f"alter type mood add value 'x' {where}")
    assert changes(plan) == {"+EnumValue", "+EnumLabel"}
    assert _labels(world) == labels
    after = {value.id: value.rank for value in world.find("mood").values}
    assert before.items() < after.items()


def test_there_is_an_end_to_the_room_between_two_values():
    world = World("create type mood as enum ('a', 'b')")
    statement = "alter type mood add value 'v{}' before 'b'"
    added = 0
    while (code := world.code(statement.format(added))) is None:
        world.run(statement.format(added))
        added += 1
    assert code == "54000"
    assert added > 50
    assert _labels(world) == ["a", *(f"v{number}" for number in range(added)), "b"]


def test_ids_of_values_are_never_used_again():
    world = World(MOOD, "alter type mood drop value 'happy'", "alter type mood add value 'happy'")
    assert [value.id for value in world.find("mood").values] == [1, 2, 4]


def test_another_label_touches_no_table():
    world = World(MOOD, "create table t (m mood default 'sad')")
    plan = world.run("alter type mood rename value 'sad' to 'low'")
    assert changes(plan) == {"-EnumLabel", "+EnumLabel"}
    assert len(plan.stages) == 1
    assert world.find("t").columns[0].default.startswith("'sad'")


def test_a_value_goes_when_no_row_has_it():
    world = World(MOOD, T, "create table u (a mood, b mood)")
    plan = world.plan("alter type mood drop value 'ok'")
    assert changes(plan) == {"~CheckConstraint", "~ConstraintName", "-EnumValue", "-EnumLabel"}
    ops = [op for stage in plan.stages for op in plan.ops(stage)]
    checks = [op.element for op in ops if isinstance(op, Validate)]
    checked = [check.expression for check in checks if isinstance(check, CheckConstraint)]
    assert checked == ["(\"c2\" <> 'ok')", "(\"c1\" <> 'ok')", "(\"c2\" <> 'ok')"]
    # The checks are enforced, everybody knows of them, all rows are looked at; then checks and value go as one.
    first, validation, last = plan.stages
    enforced = [op for op in plan.ops(first) if isinstance(op, SetState) and isinstance(op.element, CheckConstraint)]
    assert {op.state for op in enforced} == {State.ENFORCED}
    assert validation.raises == first.publishes == (world.find("t").id, world.find("u").id)
    assert {op.state for op in plan.ops(last) if isinstance(op, SetState)} == {State.ABSENT}
    world.run("alter type mood drop value 'ok'")
    assert _labels(world) == ["sad", "happy"]
    assert not world.find("t").checks


def test_a_value_goes_at_once_where_there_are_no_rows():
    world = World(MOOD, T, empty=True)
    plan = world.run("alter type mood drop value 'ok'")
    assert changes(plan) == {"-EnumValue", "-EnumLabel"}
    assert plan.change.empty == {world.find("t").id}


@pytest.mark.parametrize(
    ("setup", "statement", "code"),
    [
        ("create table u (m mood default 'ok')", "alter type mood drop value 'ok'", "2BP01"),
        ("create table u (m mood default 'sad')", "alter type mood drop value 'ok'", None),
        ("create table u (m mood check (m <> 'ok'))", "alter type mood drop value 'ok'", "2BP01"),
        ("create table u (m mood check (m <> 'ok'))", "alter type mood rename value 'ok' to 'x'", "0A000"),
        (T + "; create view v as select id from t where m = 'ok'", "alter type mood rename value 'ok' to 'x'", "0A000"),
        ("", "alter type mood drop value 'nosuch'", "22023"),
        ("", "create table u (m mood default 'nosuch')", "22P02"),
        ("", "create table u (m mood default 'ok'::public.mood)", None),
        ("", "create table u (m mood default ('ok'::text)::nosuch)", "42704"),
        ("", "create table u (t text default 'ok'::mood)", "0A000"),
        (T, "alter table t alter m set default 'ok'::mood", None),
        (T, "alter table t alter m set default 'ok'::nosuch", "42704"),
        (T + "; create type other as enum ('ok')", "alter table t alter m set default 'ok'::other", "0A000"),
        ("", "create table u (m mood, t text); alter table u alter column t type mood using t", None),
    ],
)
def test_what_stands_in_the_way(setup, statement, code):
    world = World(MOOD, *([setup] if setup else []))
    assert world.code(statement) == code


def test_text_becomes_an_enum_by_a_conversion_not_by_widening():
    world = World(MOOD, "create table u (t text, m mood)")
    assert world.code("alter table u alter column t type mood") == "42804"
    assert "+ConvertedColumn" in changes(world.plan("alter table u alter column t type mood using t"))
    assert "+ConvertedColumn" in changes(world.plan("alter table u alter column m type text"))
