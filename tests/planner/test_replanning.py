"""A job asks for the rest of its plan before every step: graphs that were built before are found again."""

from dataclasses import replace

import pytest

from seachange.model.change.elements import SecondaryIndex
from seachange.model.ids import IndexId
from seachange.planner.plan import Change, ChangePlan, plan_remainder, plan_revert, rest_graph
from seachange.planner.stages import Progress, progress_after
from tests.planner.world import World


@pytest.fixture
def plan() -> ChangePlan:
    world = World()
    world.run_each("create table t (id bigint primary key, a int)")
    world.resize("t", rows=10, bytes=100, files=1)
    rest_graph.cache_clear()
    return world.plan("create index i on t (a)")


def points(plan: ChangePlan) -> list[Progress]:
    """What a runner meets: each stage that waits for writers is planned again after the wait."""
    found: list[Progress] = []
    for number, stage in enumerate(plan.stages):
        progress = progress_after(plan.graph, plan.stages[:number])
        found.append(progress)
        if stage.raises:
            found.append(replace(progress, unfenced=progress.unfenced - set(stage.raises)))
    return found


def test_a_graph_is_built_once_for_each_point_of_a_change(plan: ChangePlan):
    met = [progress for progress in points(plan) for _ in range(3)]
    for progress in met:
        plan_remainder(plan.change, progress, plan.stages[-1].phase)
    assert rest_graph.cache_info().misses == len({progress.statuses for progress in met}) < len(points(plan))


def test_waits_are_planned_from_the_progress_that_is_given(plan: ChangePlan):
    number = next(n for n, stage in enumerate(plan.stages) if stage.raises)
    waiting = progress_after(plan.graph, plan.stages[:number])
    raised = replace(waiting, unfenced=frozenset())
    phase = plan.stages[number].phase
    first, then = (plan_remainder(plan.change, progress, phase) for progress in (waiting, raised))
    assert first.graph is then.graph
    assert (first.stages[0].raises, then.stages[0].raises) == (plan.stages[number].raises, ())


def test_the_way_back_has_a_graph_of_its_own(plan: ChangePlan):
    progress = progress_after(plan.graph, plan.stages[:1])
    there = plan_remainder(plan.change, progress, plan.stages[1].phase)
    back = plan_revert(plan.change, progress)
    assert there.graph != back.graph
    assert plan_revert(plan.change, progress).graph is back.graph


def test_equal_changes_are_not_taken_for_the_same(plan: ChangePlan):
    """Elements are equal whatever a plan knows of them beyond the schema."""
    built = tuple(
        replace(target, element=replace(target.element, source_id=IndexId(77)))
        if isinstance(target.element, SecondaryIndex)
        else target
        for target in plan.change.targets
    )
    other = replace(plan.change, targets=built)
    assert other == plan.change
    progress = progress_after(plan.graph, plan.stages[:1])
    ops = [rest.ops(stage) for rest in _rests(plan, other, progress) for stage in rest.stages]
    assert len({repr(op) for stage in ops for op in stage if "BackfillIndexes" in repr(op)}) == 2


def _rests(plan: ChangePlan, other: Change, progress: Progress) -> list[ChangePlan]:
    return [plan_remainder(change, progress, plan.stages[1].phase) for change in (plan.change, other)]
