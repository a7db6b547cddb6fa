"""What holds of every plan. A failure prints its statements and how to repeat it."""

from collections.abc import Container, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import FALLIBLE, BackfillIndexes, CollectIndexes, OpType, SetState, Validate
from seachange.model.change.targets import STATE_OF
from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import Descriptor, EnumType, Sequence
from seachange.model.states import State
from seachange.planner.elements.rule import RuleOrder
from seachange.planner.known_schema import KnownSchema
from seachange.planner.object_parts import compose, decompose
from seachange.planner.plan import ChangePlan, plan_remainder
from seachange.planner.stages import Phase, Stage
from tests.planner.normal import normal
from tests.planner.random_changes import Example, examples
from tests.planner.world import apply_stages, progress_of, reverts

OPS = {
    OpType.MUTATION: SetState,
    OpType.BACKFILL: BackfillIndexes,
    OpType.VALIDATION: Validate,
    OpType.COLLECTION: CollectIndexes,
}


def stage_of_nodes(plan: ChangePlan) -> dict[int, int]:
    return {n: number for number, stage in enumerate(plan.stages) for t in stage.transitions for n in t.nodes}


def irreversible(plan: ChangePlan, stage: Stage) -> bool:
    return any(not plan.graph.nodes[n].step.revertible for t in stage.transitions for n in t.nodes)


def hold_order(plan: ChangePlan) -> None:
    stages = stage_of_nodes(plan)
    assert sorted(stages) == list(range(len(plan.graph.nodes)))
    for path in plan.graph.paths:
        assert [stages[n] for n in path] == sorted(stages[n] for n in path)
    for dependency in plan.graph.dependencies:
        first, then = stages[dependency.first], stages[dependency.then]
        match dependency.rule.order:
            case RuleOrder.BEFORE:
                assert first <= then, dependency.rule.name
            case RuleOrder.WITH:
                assert first == then, dependency.rule.name
            case RuleOrder.EARLIER:
                assert first < then, dependency.rule.name


def check_every_step_is_taken_once_and_in_order(example: Example) -> None:
    hold_order(example.plan)
    for _, back in reverts(example.plan):
        hold_order(back)


def check_a_fenced_step_follows_a_raise_that_follows_what_it_relies_on(example: Example) -> None:
    plan = example.plan
    nodes, stages = plan.graph.nodes, stage_of_nodes(plan)
    for path, target in zip(plan.graph.paths, plan.graph.targets, strict=True):
        fenced = [n for n in path if nodes[n].step.fenced]
        assert len({stages[n] for n in fenced}) == len(fenced)
        for node in fenced:
            relied_on = max(published_before(plan, node, path), default=None)
            if relied_on is not None:
                raised = range(relied_on + 1, stages[node] + 1)
                assert any(descriptor_of(target.element) in plan.stages[s].raises for s in raised), target.element


def published_before(plan: ChangePlan, node: int, path: tuple[int, ...]) -> Iterable[int]:
    """The stages that published what everybody has to know when the step is taken."""
    stages, nodes = stage_of_nodes(plan), plan.graph.nodes
    for earlier in path[: path.index(node)]:
        if STATE_OF[nodes[earlier].origin] is not STATE_OF[nodes[earlier].status]:
            yield stages[earlier]
    for dependency in plan.graph.required[node]:
        if dependency.rule.order is RuleOrder.EARLIER:
            yield stages[dependency.first]


def check_a_stage_does_one_kind_of_work(example: Example) -> None:
    for stage in example.plan.stages:
        ops = example.plan.ops(stage)
        assert all(isinstance(op, OPS[stage.type]) for op in ops)
        assert bool(stage.publishes) == any(isinstance(op, SetState) for op in ops)
        assert len(ops) == len(set(ops))


def check_nothing_fails_and_nothing_is_taken_back_once_something_was_published(example: Example) -> None:
    plan = example.plan
    passed = [number for number, stage in enumerate(plan.stages) if irreversible(plan, stage)]
    if not passed:
        return
    assert not any(stage.type in FALLIBLE for stage in plan.stages[passed[0] :])
    assert all(stage.phase is Phase.NON_REVERTIBLE for stage in plan.stages[passed[0] + 1 :])
    # Everybody sees all of it at once.
    assert [n for n in passed if plan.stages[n].type is OpType.MUTATION][1:] == []


def check_the_plan_from_any_stage_on_is_the_rest(example: Example) -> None:
    plan = example.plan
    for number in range(1, len(plan.stages)):
        progress = progress_of(plan, plan.stages[:number])
        rest = plan_remainder(plan.change, progress, plan.stages[number].phase)
        assert [essence(stage) for stage in rest.stages] == [essence(stage) for stage in plan.stages[number:]]
        assert [rest.ops(s) for s in rest.stages] == [plan.ops(s) for s in plan.stages[number:]]


def essence(stage: Stage) -> tuple[object, ...]:
    moves = [(t.target, t.origin, t.status) for t in stage.transitions]
    return (stage.phase, stage.type, sorted(moves), stage.raises, stage.publishes)


def check_every_way_back_leads_to_the_start_and_cannot_fail(example: Example) -> None:
    plan = example.plan
    start = normal(example.before)
    for number, back in reverts(plan):
        assert not any(stage.type in FALLIBLE for stage in back.stages)
        middle = apply_stages(example.before, plan, plan.stages[:number])
        assert normal(apply_stages(middle, back, back.stages)) == start


def check_data_of_indexes_that_go_is_collected(example: Example) -> None:
    """Whether the change is done or reverted, indexes have their data and no other data is left."""
    plan = example.plan
    ways = [[(plan, plan.stages)]]
    ways += [[(plan, plan.stages[:number]), (back, back.stages)] for number, back in reverts(plan)]
    for way in ways:
        catalog = example.before
        seen = index_ids(catalog)
        collected: set[int] = set()
        for done, stages in way:
            for stage in stages:
                collected |= {i for op in done.ops(stage) if isinstance(op, CollectIndexes) for i in op.index_ids}
                catalog = apply_stages(catalog, done, (stage,))
                seen |= index_ids(catalog)
        assert collected == seen - index_ids(catalog)


def index_ids(catalog: KnownSchema) -> set[int]:
    return {index.id for descriptor in catalog.descriptors.values() for index in indexes_of(descriptor)}


def indexes_of(descriptor: Descriptor) -> list[Index]:
    if not isinstance(descriptor, Table):
        return []
    return [*descriptor.indexes, *([descriptor.next_primary] if descriptor.next_primary is not None else [])]


def check_descriptors_are_taken_apart_and_put_together_again(example: Example) -> None:
    """Also those in the middle of a change."""
    catalog = example.before
    for stage in (None, *example.plan.stages):
        if stage is not None:
            catalog = apply_stages(catalog, example.plan, (stage,))
        for descriptor in catalog.descriptors.values():
            again = compose(descriptor, decompose(descriptor))
            assert again == replace(descriptor, version=descriptor.version + 1)
            if isinstance(descriptor, Table):
                assert decode_table(encode_table(descriptor)) == descriptor


def check_nobody_sees_a_change_before_its_publication(example: Example) -> None:
    plan = example.plan
    known = example.before.descriptors
    start = visible(example.before, known)
    for number, _ in reverts(plan):
        assert visible(apply_stages(example.before, plan, plan.stages[:number]), known) == start


def visible(catalog: KnownSchema, known: Container[int]) -> dict[str, object]:
    """What a query can name, and what it may take for granted; `known` are the objects before the change."""
    found: dict[str, object] = {}
    for descriptor in catalog.descriptors.values():
        if isinstance(descriptor, Table):
            columns = [(c.name, c.type, c.default, c.generated, c.identity) for c in descriptor.visible_columns]
            required = [c.name for c in descriptor.columns if not c.nullable and c.not_null is State.PUBLIC]
            indexes = [(i.id, i.name) for i in descriptor.indexes if i.state is State.PUBLIC]
            checks = [c.name for c in descriptor.checks if c.state is State.PUBLIC]
            keys = [k.name for k in descriptor.foreign_keys if k.state is State.PUBLIC]
            found[descriptor.name] = (columns, required, indexes, checks, keys)
        elif descriptor.id in known or not is_hidden(descriptor, catalog):
            found[descriptor.name] = replace(descriptor, version=0)
    return found


def is_hidden(descriptor: Descriptor, catalog: KnownSchema) -> bool:
    """Whether it is the sequence or the type of a column that is."""
    columns = [(t.id, c) for t in catalog.descriptors.values() if isinstance(t, Table) for c in t.columns]
    hidden = [(table_id, c) for table_id, c in columns if c.state is not State.PUBLIC]
    if isinstance(descriptor, Sequence):
        return descriptor.owner in [(table_id, c.id) for table_id, c in hidden]
    return isinstance(descriptor, EnumType) and descriptor.id in [c.type.enum for _, c in hidden]


CHECKS = (
    check_descriptors_are_taken_apart_and_put_together_again,
    check_nobody_sees_a_change_before_its_publication,
    check_every_step_is_taken_once_and_in_order,
    check_a_fenced_step_follows_a_raise_that_follows_what_it_relies_on,
    check_a_stage_does_one_kind_of_work,
    check_nothing_fails_and_nothing_is_taken_back_once_something_was_published,
    check_the_plan_from_any_stage_on_is_the_rest,
    check_every_way_back_leads_to_the_start_and_cannot_fail,
    check_data_of_indexes_that_go_is_collected,
)


@settings(max_examples=300)
@given(examples())
def test_random_plans_have_all_properties(example: Example):
    for check in CHECKS:
        check(example)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=5000)
@given(examples(size_max=8))
def test_many_plans(example: Example):
    for check in CHECKS:
        check(example)
