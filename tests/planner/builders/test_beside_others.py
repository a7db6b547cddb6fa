"""Statements are planned, or refused, while another change of their table is under way, for which they then wait."""

from itertools import takewhile

import pytest

from seachange.model.change.elements import Comment
from seachange.model.object_kind import ObjectKind
from seachange.planner.known_schema import apply_ops
from tests.planner.builders.world import World

UNDER_WAY = ("alter table t alter b type varchar(9)", "alter table t alter primary key using columns (a)")
STATEMENTS = (
    "drop table t cascade",
    "drop index ib",
    "alter table t rename to other",
    "alter table t alter a type bigint",
    "alter table t drop constraint t_pkey",
    "alter table t add column s serial unique",
    "comment on index ib is 'x'",
)


def _world(under_way: str) -> World:
    """One in which everything of a change has come, and nothing has gone."""
    world = World("create table t (id int primary key, a int not null, b text)", "create index ib on t (b)")
    plan = world.plan(under_way)
    for stage in takewhile(lambda stage: not stage.is_publication, plan.stages):
        world.catalog = apply_ops(world.catalog, plan.ops(stage))
    assert [index.name for index in world.find("t").secondary].count("ib") == 2
    return world


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("under_way", UNDER_WAY)
def test_a_statement_concurrent_with_an_index_and_its_successor(under_way, statement):
    assert _world(under_way).code(statement) is None


def test_a_name_leads_to_the_index_that_is_in_view():
    world = _world(UNDER_WAY[0])
    (target,) = world.plan("comment on index ib is 'x'").change.targets
    assert isinstance(target.element, Comment)
    assert target.element.part == (ObjectKind.INDEX, world.find("t").secondary[0].id)
