"""COMMENT ON."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.planner.known_schema import apply_ops
from seachange.planner.plan import plan_revert
from seachange.planner.stages import progress_after
from tests.planner.builders.world import World, changes

T = "create table t (id int primary key, a int constraint positive check (a > 0))"


def _comments(world):
    return {comment.part: comment.text for comment in world.find("t").access.comments}


def test_of_tables_and_their_parts():
    world = World(T)
    key = world.find("t").primary.id
    for statement in (
        "comment on table t is 'whole'",
        "comment on column t.a is 'column'",
        "comment on constraint positive on t is 'check'",
        "comment on constraint t_pkey on t is 'key'",
    ):
        assert changes(world.run(statement)) == {"+Comment"}
    assert _comments(world) == {
        None: "whole",
        (ObjectKind.COLUMN, 2): "column",
        (ObjectKind.CONSTRAINT, 1): "check",
        (ObjectKind.INDEX, key): "key",
    }


def test_another_text_and_none():
    world = World(T, "comment on table t is 'one'")
    assert changes(world.run("comment on table t is 'two'")) == {"-Comment", "+Comment"}
    assert not world.run("comment on table t is 'two'").change.targets
    world.run("comment on table t is ''")
    assert not _comments(world)
    assert not world.run("comment on table t is null").change.targets


def test_a_comment_goes_with_what_it_is_on():
    world = World(T, "comment on column t.a is 'column'", "comment on constraint positive on t is 'check'")
    assert {"-Comment"} <= changes(world.run("alter table t drop column a"))
    assert not _comments(world)


def test_a_comment_stays_on_what_is_rebuilt():
    world = World(T, "create index i on t (a)", "comment on index i is 'index'")
    world.run("comment on column t.a is 'column'; comment on constraint positive on t is 'check'")
    world.run("alter table t alter column a type text using 'x'")
    assert sorted(_comments(world).values()) == ["check", "column", "index"]
    table = world.find("t")
    parts = dict(list(_comments(world)))
    assert parts[ObjectKind.INDEX] == table.secondary[0].id
    assert parts[ObjectKind.COLUMN] == table.column_by_name["a"].id
    assert parts[ObjectKind.CONSTRAINT] == table.checks[0].id


@pytest.mark.parametrize("is_published", [True, False])
def test_a_comment_that_is_made_during_a_change_stays(is_published):
    world = World(T, "alter table t add column c int", "create index i on t (a)")
    world.run("comment on column t.a is 'before'; comment on index i is 'before'")
    plan = world.plan("alter table t alter column a type text using 'x', drop column c")
    first, *rest = plan.stages
    world.catalog = apply_ops(world.catalog, plan.ops(first))
    parts = ("column t.a", "index i", "constraint positive on t", "column t.c")
    for part in parts:
        world.run(f"comment on {part} is 'meanwhile'")
    if not is_published:
        plan = plan_revert(plan.change, progress_after(plan.graph, [first]))
        rest = list(plan.stages)
    for stage in rest:
        world.catalog = apply_ops(world.catalog, plan.ops(stage))
    table = world.find("t")
    commented = {
        (ObjectKind.COLUMN, table.column_by_name["a"].id),
        (ObjectKind.INDEX, table.secondary[0].id),
        (ObjectKind.CONSTRAINT, table.checks[0].id),
        *(() if is_published else [(ObjectKind.COLUMN, 3)]),
    }
    assert _comments(world) == dict.fromkeys(commented, "meanwhile")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("comment on column v.nope is 'x'", "42703"),
        ("comment on view v is 'x'", None),
        ("comment on column t.nosuch is 'x'", "42703"),
        ("comment on database seachange is 'x'", None),
        ("comment on database nosuch is 'x'", "3D000"),
    ],
)
def test_comment_on_a_missing_object_has_the_code_of_postgresql(statement, code):
    assert World(T, "create view v as select a from t").code(statement) == code


@pytest.mark.parametrize("is_published", [True, False])
def test_a_comment_that_is_removed_during_a_change_does_not_come_back(is_published):
    parts = ("column t.a", "index i", "constraint positive on t", "constraint t_pkey on t")
    world = World(T, "create index i on t (a)", *(f"comment on {part} is 'before'" for part in parts))
    plan = world.plan("alter table t alter column a type text using 'x'")
    first, *rest = plan.stages
    world.catalog = apply_ops(world.catalog, plan.ops(first))
    for part in parts[:3]:
        world.run(f"comment on {part} is null")
    if not is_published:
        plan = plan_revert(plan.change, progress_after(plan.graph, [first]))
        rest = list(plan.stages)
    for stage in rest:
        world.catalog = apply_ops(world.catalog, plan.ops(stage))
    assert _comments(world) == {(ObjectKind.INDEX, world.find("t").primary.id): "before"}
