"""Large changes are planned, and work grows with them no faster than they do."""

import cProfile
import pstats
from itertools import pairwise

import pytest

from tests.planner.world import World

SHAPES = {
    "columns": "alter table t {}|add column c{n} int default 1|, ",
    "table": "create table w (id bigint primary key, {})|c{n} int|, ",
    "indexes": "{}|create index i{n} on t (a)|; ",
    "checks": "alter table t {}|add constraint k{n} check (a > {n})|, ",
    "unique columns": "alter table t {}|add column u{n} int unique|, ",
    "foreign keys": "alter table t {}|add constraint k{n} foreign key (a) references t|, ",
    "tables": "{}|create table w{n} (id serial primary key)|; ",
}


def calls(world: World, sql: str) -> int:
    """How many functions are called to plan it: a measure that no other process disturbs."""
    profile = cProfile.Profile()
    profile.runcall(world.plan, sql)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", SHAPES)
def test_planning_is_linear(shape: str):
    whole, part, between = SHAPES[shape].split("|")
    few, many = (whole.format(between.join(part.format(n=n) for n in range(size))) for size in (30, 300))
    world = World()
    world.run_each("create table t (id bigint primary key, a int)")
    assert calls(world, many) <= 12 * calls(world, few)


def test_thousands_of_steps_may_hang_together():
    columns = [f"c{n}" for n in range(700)]
    world = World()
    world.run(f"create table t (id bigint primary key, {', '.join(f'{column} int' for column in columns)})")
    world.run("; ".join(f"create index on t ({one}, {other})" for one, other in pairwise(columns)))
    plan = world.run(f"alter table t {', '.join(f'drop column {column}' for column in columns)}")
    assert len(plan.stages) == 2
