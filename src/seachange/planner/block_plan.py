"""Changes of one transaction block, merged: a change in several stages takes along earlier ones that only COMMIT was
going to publish, since it may depend on what they add.

**Invariant:** a merged change leads from the published versions to what the block sees; what the block has added and
dropped again is in no target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import OpType
from seachange.model.change.targets import Status, Target
from seachange.model.ids import DescriptorId
from seachange.planner.graph import Skip, build_graph
from seachange.planner.plan import Change, ChangePlan
from seachange.planner.rules.release import release_of
from seachange.planner.stages import Phase, Stage, build_stages, unfenced_at_first

_Planned = dict[Element, tuple[Target, Skip | None]]


def touched_by(change: Change) -> frozenset[DescriptorId]:
    return frozenset(descriptor_of(target.element) for target in change.targets)


def merge_plan(earlier: Sequence[Change], plan: ChangePlan) -> ChangePlan:
    """The plan of a change together with earlier ones, from the versions that were published before them."""
    if not earlier:
        return plan
    for change in earlier:
        _check_mergeable(change)
    merged: _Planned = {}
    for number, change in enumerate((*earlier, plan.change)):
        for place, target in enumerate(change.targets):
            _merge(merged, replace(target, statement=number), change.skips.get(place))
    every = (*earlier, plan.change)
    change = replace(
        plan.change,
        targets=tuple(target for target, _ in merged.values()),
        skips={n: skip for n, (_, skip) in enumerate(merged.values()) if skip is not None},
        sources={id_: index for one in every for id_, index in one.sources.items()},
        fenced=frozenset().union(*(one.fenced for one in every)),
    )
    graph = build_graph(change.targets, release_of(change.release), change.skips, in_block=True)
    stages = build_stages(graph, Phase.STATEMENT, unfenced_at_first(change.targets))
    return ChangePlan(change, graph, stages, plan.notices)


def first_stages(plan: ChangePlan) -> tuple[Stage, ...]:
    """The stages that wait for nothing, and are published with the job of the change."""
    return tuple(takewhile(_is_immediate, plan.stages))


def _is_immediate(stage: Stage) -> bool:
    return stage.type is OpType.MUTATION and not stage.raises and not stage.is_publication


def _merge(merged: _Planned, target: Target, skip: Skip | None) -> None:
    # Taken out first: the later element may know more, of which comparisons know nothing.
    known = merged.pop(target.element, None)
    if known is None:
        merged[target.element] = target, skip
    elif known[0].adds and target.adds:
        merged[target.element] = replace(target, start=known[0].start), skip
    elif known[0].start is not Status.ABSENT and not target.adds:
        merged[target.element] = replace(target, start=known[0].start), None
    # Else it was added and is dropped again, or the other way round.


def _check_mergeable(change: Change) -> None:
    """What relies on a table without rows, or replaces its rows, is published as it is, or not at all."""
    replaces = any(isinstance(target.element, elements.PrimaryIndex) for target in change.targets)
    if change.empty or replaces:
        raise errors.FeatureNotSupported(
            feature="this change of a table after another one in the same transaction block",
            instead="Commit the first one, then send the other.",
        )
