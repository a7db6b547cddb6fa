"""The tables that plans are made with: elements, lifecycles and rules."""

from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from itertools import count, pairwise
from random import Random
from typing import get_args

import pytest

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.ops import FALLIBLE, OpType
from seachange.model.change.targets import GOAL_STATUS, STATE_OF, Goal, Status, Target
from seachange.model.states import BEHAVIOUR, REFUSING, State
from seachange.planner.elements.registry import COLUMN_DROP_ORDER, DROP_ORDER, HOSTED, LIFECYCLES, SPECS, TOPICS
from seachange.planner.elements.rule import COLUMN_PARTS, OBJECTS, Adding, At, Rule, RuleOrder
from seachange.planner.elements.spec import Topic
from seachange.planner.graph import Graph, build_graph, field_values
from seachange.planner.lifecycles.f1 import F1_LIFECYCLES
from seachange.planner.lifecycles.lifecycle import Lifecycle, LifecycleStep
from seachange.planner.rules.release import CURRENT, RELEASES
from tests.planner.universe import UNIVERSE

KINDS: tuple[type[Element], ...] = get_args(Element)
# A step is taken from ABSENT or from what the step before it has led to.
STEPS = [
    (f"{name} {kind.__name__} {way}", life, steps)
    for name, table in (("ours", LIFECYCLES), ("in a block", CURRENT.in_block), ("f1", F1_LIFECYCLES))
    for kind, life in table.items()
    for way, steps in (("add", life.add), ("drop", life.drop))
]
each_way = pytest.mark.parametrize(
    ("life", "steps"), [(life, steps) for _, life, steps in STEPS], ids=[s[0] for s in STEPS]
)
each_rule = pytest.mark.parametrize("rule", CURRENT.rules, ids=lambda rule: rule.name)


def test_every_element_has_both_ways():
    assert set(LIFECYCLES) == set(KINDS)
    for life in LIFECYCLES.values():
        assert life.add[-1].to is Status.PUBLIC
        assert life.drop[-1].to is Status.ABSENT


def test_every_status_stands_for_a_state_that_is_described():
    assert set(STATE_OF) == set(Status)
    assert set(STATE_OF.values()) <= set(BEHAVIOUR)
    assert set(BEHAVIOUR) == set(State)
    assert set(GOAL_STATUS) == set(Goal)


def test_releases_are_known_by_their_numbers():
    assert all(number == release.number for number, release in RELEASES.items())
    assert max(RELEASES) == CURRENT.number


def test_a_release_does_not_know_the_kinds_of_later_ones():
    assert elements.ColumnCompression in RELEASES[1].lifecycles
    assert elements.ColumnStatistics not in RELEASES[1].lifecycles
    assert set(CURRENT.lifecycles) == set(LIFECYCLES)


def test_nothing_rejects_rows_before_the_commit_of_a_block():
    assert set(CURRENT.in_block) == set(KINDS)
    for kind, life in CURRENT.in_block.items():
        before = [STATE_OF[step.to] for step in life.add[:-1]]
        assert not REFUSING.intersection(before)
        assert [step.fenced for step in life.add] == [step.fenced for step in LIFECYCLES[kind].add]
        assert life.drop == LIFECYCLES[kind].drop


@each_way
def test_no_status_is_passed_twice(life: Lifecycle, steps: tuple[LifecycleStep, ...]):
    assert len({step.to for step in steps}) == len(steps)


@each_way
def test_nothing_is_revertible_after_what_is_not(life: Lifecycle, steps: tuple[LifecycleStep, ...]):
    assert [step.revertible for step in steps] == sorted((step.revertible for step in steps), reverse=True)


@each_way
def test_nothing_that_can_fail_is_irreversible(life: Lifecycle, steps: tuple[LifecycleStep, ...]):
    if life in LIFECYCLES.values():
        assert all(step.revertible for step in steps if step.op in FALLIBLE)


@each_way
def test_work_does_not_change_the_state(life: Lifecycle, steps: tuple[LifecycleStep, ...]):
    """A version is published by mutations only, so a status that others must know is reached by one."""
    origin = Status.ABSENT if steps is life.add else Status.PUBLIC
    for step in steps:
        if step.op in FALLIBLE:
            assert STATE_OF[step.to] is STATE_OF[origin]
        elif step.op is OpType.MUTATION:
            assert STATE_OF[step.to] is not STATE_OF[origin]
        origin = step.to


@pytest.mark.parametrize("kind", LIFECYCLES, ids=lambda kind: kind.__name__)
def test_a_fenced_step_starts_from_what_a_mutation_has_published(kind: type[Element]):
    steps = LIFECYCLES[kind].add
    published = False
    for step in steps:
        assert not step.fenced or published
        published = published or step.op is OpType.MUTATION


def test_what_reads_rows_is_fenced():
    for life in LIFECYCLES.values():
        assert all(step.fenced for step in life.add if step.op in FALLIBLE)


# Rules.


def test_names_of_rules_are_sentences_of_their_own():
    names = [rule.name for rule in CURRENT.rules]
    assert len(set(names)) == len(names)


@each_rule
def test_a_rule_has_a_reason(rule: Rule):
    assert len(rule.reason) > 10
    assert rule.reason != rule.name


@each_rule
def test_a_rule_joins_fields_that_its_elements_have(rule: Rule):
    assert rule.join
    for name in rule.join:
        one, other = (name, name) if isinstance(name, str) else name
        assert any(has_field(kind, one) for kind in rule.first.kinds), one
        assert any(has_field(kind, other) for kind in rule.then.kinds), other


@each_rule
def test_a_rule_joins_some_elements(rule: Rule):
    """In a schema that has one of everything, seen once as it comes and once as it goes."""
    graphs = [universe_graph(Goal.PUBLIC, Status.ABSENT), universe_graph(Goal.ABSENT, Status.PUBLIC)]
    mixed = build_graph([*targets(Goal.PUBLIC, Status.ABSENT), *targets(Goal.ABSENT, Status.PUBLIC)], CURRENT)
    used = {dependency.rule.name for graph in (*graphs, mixed) for dependency in graph.dependencies}
    assert rule.name in used


@each_rule
def test_a_rule_speaks_of_statuses_that_are_reached(rule: Rule):
    for at in (rule.first, rule.then):
        for kind in at.kinds:
            assert speaks_of(at, kind) or any(speaks_of(at, other) for other in at.kinds)


def speaks_of(at: At, kind: type[Element]) -> bool:
    return not (isinstance(at, Adding) and isinstance(at.status, Status)) or at.status in LIFECYCLES[kind].statuses


def has_field(kind: type[Element], name: str) -> bool:
    known = {field.name for field in fields(kind)} | set(vars(kind)) | {"descriptor_id"}
    return name in known


# The graph of everything that there can be has no cycles, nor has that of any part of it.


def targets(goal: Goal, start: Status, among: Iterable[Element] = UNIVERSE) -> list[Target]:
    return [Target(element, goal, start) for element in among]


def universe_graph(goal: Goal, start: Status) -> Graph:
    return build_graph(targets(goal, start), CURRENT)


def hold_acyclic(graph: Graph) -> None:
    """BEFORE, EARLIER and the order of a target's own steps, between groups of nodes that share a stage."""
    group = list(range(len(graph.nodes)))

    def find(node: int) -> int:
        while group[node] != node:
            node = group[node]
        return node

    for dependency in graph.dependencies:
        if dependency.rule.order is RuleOrder.WITH:
            group[find(dependency.first)] = find(dependency.then)
    later: dict[int, set[int]] = {find(n): set() for n in range(len(graph.nodes))}
    for path in graph.paths:
        for one, other in pairwise(path):
            assert find(one) != find(other), "two steps of one element in one stage"
            later[find(one)].add(find(other))
    for dependency in graph.dependencies:
        first, then = find(dependency.first), find(dependency.then)
        if dependency.rule.order is RuleOrder.EARLIER:
            assert first != then, dependency.rule.name
        if first != then:
            later[first].add(then)
    waiting = dict.fromkeys(later, 0)
    for others in later.values():
        for node in others:
            waiting[node] += 1
    ready = [node for node, number in waiting.items() if number == 0]
    for taken in count():
        if not ready:
            assert taken == len(later), "a cycle"
            return
        for node in later[ready.pop()]:
            waiting[node] -= 1
            if waiting[node] == 0:
                ready.append(node)


@pytest.mark.parametrize(("goal", "start"), [(Goal.PUBLIC, Status.ABSENT), (Goal.ABSENT, Status.PUBLIC)])
def test_the_rules_contradict_each_other_for_no_set_of_elements(goal: Goal, start: Status):
    hold_acyclic(universe_graph(goal, start))
    random = Random(4)
    for _ in range(200):
        chosen = [element for element in UNIVERSE if random.random() < 0.5]
        hold_acyclic(build_graph(targets(goal, start, chosen), CURRENT))


def test_rules_join_the_same_elements_in_a_block():
    added = targets(Goal.PUBLIC, Status.ABSENT)
    alone, in_block = (build_graph(added, CURRENT, in_block=value) for value in (False, True))
    assert [node.step.op for node in in_block.nodes] == [node.step.op for node in alone.nodes]
    assert in_block.dependencies == alone.dependencies
    hold_acyclic(in_block)


def test_the_universe_has_every_kind():
    assert {type(element) for element in UNIVERSE} == set(KINDS)
    assert all(field_values(element, "descriptor_id") for element in UNIVERSE)
    assert elements.ConvertedColumn in {type(element) for element in UNIVERSE}


# Specifications.


def test_every_element_has_a_specification():
    assert set(SPECS) == set(KINDS)
    assert sum(len(topic.specs) for topic in TOPICS) == len(KINDS)
    assert set(DROP_ORDER) == set(KINDS)
    assert all(spec.noun for spec in SPECS.values())


def test_parts_of_a_column_are_hidden_and_dropped_with_it():
    for kind in COLUMN_PARTS:
        assert SPECS[kind].host is not None
        assert SPECS[kind].in_column is not None
    assert set(COLUMN_PARTS) <= set(HOSTED)
    assert set(COLUMN_DROP_ORDER) == {*COLUMN_PARTS, elements.ColumnNotNull}


def test_objects_are_dropped_after_their_parts():
    assert set(DROP_ORDER[-len(OBJECTS) :]) == set(OBJECTS)
    assert DROP_ORDER[-len(OBJECTS) - 1] is elements.NamespaceElement


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.__name__)
def test_a_specification_names_fields_that_its_element_has(kind: type[Element]):
    spec = SPECS[kind]
    assert spec.host is None or all(has_field(kind, name) for name in spec.host.fields)
    if spec.refers is not None:
        assert has_field(kind, spec.refers.field)
        assert has_field(spec.refers.to, spec.refers.by)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.specs[-1].kind.__name__)
def test_a_topic_has_one_stem_in_the_model_and_in_the_planner(topic: Topic):
    (stem,) = {spec.kind.__module__.rpartition(".")[2] for spec in topic.specs}
    assert topic is getattr(import_module(f"seachange.planner.elements.{stem}"), stem.upper())
