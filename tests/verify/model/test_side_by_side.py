"""Programs of two jobs: when the planner lets them overlap, and what each of them publishes."""

from itertools import count

import pytest

from seachange.cli.verify import parse_ddl
from seachange.model.change import elements
from seachange.model.states import State
from seachange.planner.exclusion import BUILT_KINDS
from seachange.planner.known_schema import apply_ops
from seachange.planner.plan import plan_statements
from seachange.verify.model.program import set_up
from seachange.verify.model.scenarios import BESIDE_SCENARIOS
from seachange.verify.model.side_by_side import compile_side_by_side, may_overlap
from seachange.verify.model.switches import Switch

TABLE = "create table t (id int primary key, a int)"
INDEXES = ("create index i on t (a)", "create index j on t (a)")
# Foreign keys are explored in a model of their own, one change at a time.
UNEXPLORED = {elements.ForeignKeyElement, elements.ForeignKeyParent}


def compiled(scenario):
    return compile_side_by_side(parse_ddl, scenario.setup, scenario.changes)


def test_two_builds_are_two_jobs():
    program = compile_side_by_side(parse_ddl, TABLE, INDEXES)
    first, second = ([i.act for _, i in program.path(start)] for start in program.starts)
    assert first == second
    states = {
        tuple(program.state(number, e) for e in program.elements if isinstance(e, elements.SecondaryIndex))
        for number in range(len(program.versions))
    }
    every = (State.ABSENT, State.WRITE_ONLY, State.PUBLIC)
    assert states == {(one, other) for one in every for other in every}


def test_changes_that_exclude_each_other_are_one_job():
    changes = (INDEXES[0], "truncate t")
    assert compile_side_by_side(parse_ddl, TABLE, changes).starts == (0,)
    broken = compile_side_by_side(parse_ddl, TABLE, changes, switches=frozenset({Switch.NO_EXCLUSION}))
    assert len(broken.starts) == 2


@pytest.mark.parametrize("scenario", BESIDE_SCENARIOS, ids=lambda s: s.name)
def test_a_plan_does_not_depend_on_the_stage_of_the_other_job(scenario):
    """The model plans the second change when the first has begun. The planner may find it at any stage."""
    ids = count(100)
    catalog = set_up(parse_ddl, scenario.setup, ids)
    first, second = map(parse_ddl, scenario.changes)
    running = plan_statements(catalog, first, ids)
    catalog = apply_ops(catalog, running.ops(running.stages[0]))
    expected = plan_statements(catalog, second, count(1_000))
    if not may_overlap(running.change, expected.change):
        return
    for stage in running.stages[1:-1]:
        catalog = apply_ops(catalog, running.ops(stage))
        plan = plan_statements(catalog, second, count(1_000))
        assert (plan.change, plan.stages) == (expected.change, expected.stages)


def test_every_kind_that_may_overlap_is_explored():
    changed: set[type] = set()
    for scenario in BESIDE_SCENARIOS:
        program = compiled(scenario)
        if len(program.starts) > 1:
            for element in program.elements:
                if len({program.state(n, element) for n in range(len(program.versions))}) > 1:
                    changed.add(type(element))
    assert set(BUILT_KINDS) - UNEXPLORED <= changed
