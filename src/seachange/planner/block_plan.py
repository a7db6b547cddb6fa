"""Changes of one transaction block, merged: a change in several stages takes along what earlier ones do to its tables
and only COMMIT was going to publish, since it may depend on what they add.

**Invariant:** a merged change leads from the published versions to what the block sees; what the block has added and
dropped again is in no target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import OpType
from seachange.model.change.targets import Goal, Status, Target
from seachange.model.ids import DescriptorId, IndexId
from seachange.planner.graph import Skip, build_graph
from seachange.planner.plan import Change, ChangePlan, ends_of_keys, mark_uncommitted
from seachange.planner.rules.release import release_of
from seachange.planner.stages import Phase, Stage, build_stages, unfenced_at_first

_Planned = dict[Element, tuple[Target, Skip | None]]


def touched_by(change: Change) -> frozenset[DescriptorId]:
    return frozenset(descriptor_of(target.element) for target in change.targets)


def part_of(change: Change, ids: Collection[DescriptorId], inside: bool = True) -> Change:
    """What a change does to these tables, or the rest of it. A foreign key belongs to both of its tables."""
    across = {
        (e.table_id, e.constraint_id) for e in _elements(change) if isinstance(e, _KEYS) and not _ends(e) <= {*ids}
    }
    chosen = [
        n for n, e in enumerate(_elements(change)) if (descriptor_of(e) in ids and _key(e) not in across) is inside
    ]
    return keep_targets(change, chosen)


def keep_targets(change: Change, chosen: Sequence[int]) -> Change:
    """The targets with these numbers."""
    return replace(
        change,
        targets=tuple(change.targets[n] for n in chosen),
        skips={place: change.skips[n] for place, n in enumerate(chosen) if n in change.skips},
    )


def without_parents(plan: ChangePlan, ids: Collection[DescriptorId]) -> ChangePlan:
    """The plan without the parents' ends of foreign keys to these tables."""
    ends = (elements.ForeignKeyParent,)
    chosen = [n for n, e in enumerate(_elements(plan.change)) if not isinstance(e, ends) or descriptor_of(e) not in ids]
    is_whole = len(chosen) == len(plan.change.targets)
    return plan if is_whole else planned(keep_targets(plan.change, chosen), plan)


_KEYS = (elements.ForeignKeyElement, elements.ForeignKeyParent)


def _elements(change: Change) -> list[Element]:
    return [target.element for target in change.targets]


def _ends(key: elements.ForeignKeyElement | elements.ForeignKeyParent) -> set[DescriptorId]:
    return {key.table_id, key.parent_id}


def _key(element: Element) -> tuple[object, object]:
    """The constraint that an element is, or is a part of."""
    return getattr(element, "table_id", None), getattr(element, "constraint_id", None)


def merge_plan(earlier: Sequence[Change], plan: ChangePlan) -> ChangePlan:
    """The plan of a change together with earlier ones, from the versions that were published before them."""
    if not earlier:
        return plan
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
    return planned(change, plan)


def start_from(plan: ChangePlan, known: Mapping[elements.ConstraintName, Status]) -> ChangePlan:
    """The plan with constraints that are validated from where other sessions know them. One that the block itself has
    added as NOT VALID rejects none of their rows: it is hidden, or they know nothing of it, not even its name."""
    starts = {_key(name): status for name, status in known.items() if status is not Status.ENFORCED}
    if not starts:
        return plan
    absent = [name for name, status in known.items() if status is Status.ABSENT]
    targets = (
        *(mark_uncommitted(replace(t, start=starts.get(_key(t.element), t.start))) for t in plan.change.targets),
        *(Target(name, Goal.PUBLIC, Status.ABSENT) for name in absent),
    )
    fenced = plan.change.fenced | ends_of_keys(targets, plan.change.skips)
    return planned(replace(plan.change, targets=targets, fenced=fenced), plan)


def planned(change: Change, plan: ChangePlan) -> ChangePlan:
    graph = build_graph(change.targets, release_of(change.release), change.skips, in_block=True)
    stages = build_stages(graph, Phase.STATEMENT, unfenced_at_first(change.targets))
    return ChangePlan(change, graph, stages, plan.notices)


def build_from(plan: ChangePlan, primaries: Mapping[DescriptorId, IndexId]) -> ChangePlan:
    """The plan with new indexes of some tables built from, and ending in the key of, a primary index that the block
    has added before, and that is not public yet."""
    targets = tuple(_built_from(target, primaries.get(descriptor_of(target.element))) for target in plan.change.targets)
    change = replace(plan.change, targets=targets)
    graph = build_graph(targets, release_of(change.release), change.skips, in_block=True)
    return replace(plan, change=change, graph=graph)


def _built_from(target: Target, primary_id: IndexId | None) -> Target:
    element = target.element
    if primary_id is None or not target.adds or not isinstance(element, elements.SecondaryIndex | elements.UniqueIndex):
        return target
    return replace(target, element=replace(element, source_id=element.source_id or primary_id))


def first_stages(plan: ChangePlan) -> tuple[Stage, ...]:
    """The stages that wait for nothing, and are published with the job of the change."""
    return tuple(takewhile(_is_immediate, plan.stages))


def has_children(plan: ChangePlan) -> bool:
    """Whether something is published before the publication: if not, other sessions know of the change with it."""
    before = takewhile(lambda stage: not stage.is_publication, plan.stages)
    return any(stage.type is OpType.MUTATION for stage in before)


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
