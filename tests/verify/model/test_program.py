"""Programs are what the planner plans: stages, ways back, and the versions between."""

import pytest

from seachange.cli.verify import parse_ddl
from seachange.model.change import elements
from seachange.model.states import State
from seachange.planner.elements.registry import LIFECYCLES
from seachange.verify.model.program import Act, compile_program
from seachange.verify.model.scenarios import RETURN_SCENARIOS, SCENARIOS

TABLE = "create table t (id int primary key, a int)"


def compiled(scenario):
    return compile_program(parse_ddl, scenario.setup, scenario.changes, has_rows=scenario.has_rows)


def test_a_program_goes_forth_and_back():
    program = compile_program(parse_ddl, TABLE, ["create index i on t (a)"])
    forth = [instruction.act for _, instruction in program.path(0)]
    assert forth == [Act.PUBLISH, Act.RAISE, Act.BACKFILL, Act.PUBLISH, Act.END]
    back = program.instructions[2].back
    assert back is not None
    assert [i.act for _, i in program.path(back)] == [Act.PUBLISH, Act.RAISE, Act.COLLECT, Act.END]
    index = next(e for e in program.elements if isinstance(e, elements.SecondaryIndex))
    states = [program.state(n, index) for n in range(4)]
    assert states == [State.ABSENT, State.WRITE_ONLY, State.PUBLIC, State.ABSENT]


def test_a_way_back_is_written_once():
    program = compile_program(parse_ddl, TABLE, ["create unique index i on t (a)"])
    assert len({i.back for i in program.instructions if i.back is not None}) == 1


@pytest.mark.parametrize("scenario", [*SCENARIOS, *RETURN_SCENARIOS], ids=lambda s: s.name)
def test_versions_rise_and_what_can_fail_can_be_reverted(scenario):
    program = compiled(scenario)
    for start, first in enumerate(program.instructions):
        versions = [i.version for _, i in program.path(start)]
        assert versions == sorted(versions)
        if first.act in (Act.BACKFILL, Act.VALIDATE):
            assert first.back is not None
        if first.back is not None:
            assert program.instructions[first.back].version >= first.version or first.act is Act.PUBLISH


def test_every_kind_of_element_with_states_of_its_own_is_explored():
    changed: set[type] = set()
    for scenario in (*SCENARIOS, *RETURN_SCENARIOS):
        program = compiled(scenario)
        for element in program.elements:
            if len({program.state(n, element) for n in range(len(program.versions))}) > 1:
                changed.add(type(element))
    assert {kind for kind, lifecycle in LIFECYCLES.items() if len(lifecycle.add) > 1} <= changed
