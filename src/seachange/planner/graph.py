"""The graph of a change: a node for each status that a target arrives at, edges for what has to be done before.

Nodes of one target follow each other (op edges); rules join nodes of different targets (dependency edges).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import GOAL_STATUS, UNCOMMITTED, Goal, Status, Target
from seachange.planner.elements.registry import HOSTED, HOSTS
from seachange.planner.elements.rule import Adding, At, Dropping, Moment, Rule, RuleOrder
from seachange.planner.lifecycles.lifecycle import LifecycleStep
from seachange.planner.rules.release import Release, lifecycle_of

# Fields that hold several values; a join on one of them agrees if one value does.
_MANY = frozenset({"input_ids", "column_ids", "rebuilt_ids", "sequence_ids", "relation_ids", "column_uses"})


@dataclass(frozen=True, slots=True)
class Skip:
    """Statuses that a target passes without stopping, because it needs neither the wait nor the work, and why."""

    reason: str
    statuses: frozenset[Status]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A step of target number `target` from status `origin`, past statuses that are left out for `skipped` reasons."""

    target: int
    origin: Status
    step: LifecycleStep
    passes: tuple[Status, ...] = ()
    skipped: str = ""

    @property
    def status(self) -> Status:
        return self.step.to


@dataclass(frozen=True, slots=True)
class Dependency:
    first: int
    then: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Graph:
    """`paths` are the numbers of each target's nodes in order; `required` and `companions` the dependencies by node."""

    targets: tuple[Target, ...]
    nodes: tuple[GraphNode, ...]
    paths: tuple[tuple[int, ...], ...]
    dependencies: tuple[Dependency, ...]
    # Dependencies of which the node is `then`; and those that tie it to another in one stage, from either side.
    required: tuple[tuple[Dependency, ...], ...]
    companions: tuple[tuple[int, ...], ...]


def path_of(target: Target, release: Release, in_block: bool = False) -> tuple[tuple[Status, LifecycleStep], ...]:
    """The steps that are left, each with the status that it starts from."""
    kind: Any = type(target.element)
    return _path(kind, target.goal, target.start, release, in_block)


@lru_cache(maxsize=4_096)
def _path(
    kind: type[Any], goal: Goal, start: Status, release: Release, in_block: bool
) -> tuple[tuple[Status, LifecycleStep], ...]:
    lifecycle = lifecycle_of(kind, goal, start, release, in_block)
    statuses = lifecycle.statuses
    steps: tuple[LifecycleStep, ...] = ()
    match goal:
        case Goal.PUBLIC | Goal.ENFORCED | Goal.HIDDEN:
            steps = lifecycle.add[statuses.index(start) : statuses.index(GOAL_STATUS[goal])]
            if in_block and goal is Goal.ENFORCED and steps:
                # It rejects rows of other sessions from this step on, which is therefore a part of COMMIT.
                steps = (*steps[:-1], replace(steps[-1], revertible=False))
        case Goal.TRANSIENT:
            # As far as it can be without being seen.
            end = max(1, len(lifecycle.add) - 1)
            steps = (*lifecycle.add[statuses.index(start) : end], *lifecycle.drop)
        case Goal.ABSENT:
            steps = lifecycle.drop if start is not Status.ABSENT else ()
    origins = (start, *(step.to for step in steps))
    return tuple(zip(origins, steps, strict=False))


def build_graph(
    targets: Sequence[Target], release: Release, skips: Mapping[int, Skip] | None = None, in_block: bool = False
) -> Graph:
    """`skips` are those of the targets with these numbers; `in_block`: the change is that of a transaction block."""
    nodes: list[GraphNode] = []
    paths: list[tuple[int, ...]] = []
    hosted = _hosted(targets)
    for number, target in enumerate(targets):
        start = len(nodes)
        skip = (skips or {}).get(number, _NO_SKIP)
        nodes += _nodes(number, path_of(target, release, in_block), skip, number in hosted)
        paths.append(tuple(range(start, len(nodes))))
    dependencies = tuple(_dependencies(targets, nodes, paths, release))
    required: list[list[Dependency]] = [[] for _ in nodes]
    companions: list[list[int]] = [[] for _ in nodes]
    for dependency in dependencies:
        required[dependency.then].append(dependency)
        if dependency.rule.order is RuleOrder.WITH:
            companions[dependency.first].append(dependency.then)
            companions[dependency.then].append(dependency.first)
    return Graph(
        tuple(targets),
        tuple(nodes),
        tuple(paths),
        dependencies,
        tuple(tuple(r) for r in required),
        tuple(tuple(c) for c in companions),
    )


@cache
def _revertible(step: LifecycleStep) -> LifecycleStep:
    return replace(step, revertible=True)


_NO_SKIP = Skip("", frozenset())
_WORK = frozenset({Status.BACKFILLED, Status.VALIDATED})


def _nodes(
    number: int, path: Sequence[tuple[Status, LifecycleStep]], skip: Skip, is_hosted: bool
) -> Iterable[GraphNode]:
    """A step to a status that is left out becomes a part of the one after it. What is hosted is a part of a hidden
    element, so it is invisible: it can be added, and reverted, with it."""
    passed: list[Status] = []
    start: Status | None = None
    for position, (origin, step) in enumerate(path):
        if start is None:
            start = origin
        if step.to in skip.statuses and position + 1 < len(path):
            passed.append(step.to)
            continue
        # What it would have waited for lies in what is left out.
        kept = replace(step, fenced=False) if passed and step.fenced else step
        if is_hosted and not kept.revertible and kept.to is not Status.ABSENT:
            kept = _revertible(kept)
        yield GraphNode(number, start, kept, tuple(passed), skip.reason if passed else "")
        passed, start = [], None


_COLUMN = ("table_id", "column_id")
# New sequences and types belong to a column.
_OWNED = frozenset({elements.SequenceElement, elements.EnumTypeElement})
# What hides others, and the fields in which they agree with it.
_HOSTING: dict[Any, tuple[tuple[str, ...], ...]] = {
    kind: tuple(host.fields for host in HOSTS if kind in host.kinds)
    for kind in (*_OWNED, *(kind for host in HOSTS for kind in host.kinds))
}
_HOST_FIELDS = tuple(dict.fromkeys(host.fields for host in HOSTS))


def _hosted(targets: Sequence[Target]) -> set[int]:
    """The targets that are invisible as long as their host is hidden: parts of what is being added, and the
    new sequence or type of a column that is."""
    # What is a part of a new table waits for the table, and so for the publication.
    new = {t.element.table_id for t in targets if t.adds and isinstance(t.element, elements.TableElement)}
    hosts: set[tuple[object, ...]] = set()
    created: set[int] = set()
    for target in targets:
        kind = type(target.element)
        if kind not in _HOSTING or not target.adds or getattr(target.element, "table_id", None) in new:
            continue
        for fields in _HOSTING[kind]:
            hosts.add(_place(target.element, fields))
        if kind in _OWNED:
            created.add(descriptor_of(target.element))
    if not hosts and not created:
        return set()
    hosted: set[int] = set()
    belonging: set[int | None] = set()
    for number, target in enumerate(targets):
        element = target.element
        if not target.adds:
            continue
        if type(element) in HOSTED and any(_place(element, fields) in hosts for fields in _HOST_FIELDS):
            hosted.add(number)
        if isinstance(element, elements.SequenceOwnerElement) and _place(element, _COLUMN) in hosts:
            belonging.add(element.sequence_id)
        elif isinstance(element, elements.ColumnType) and _place(element, _COLUMN) in hosts:
            belonging.add(element.type_id)
    belonging &= created
    for number, target in enumerate(targets):
        if target.adds and descriptor_of(target.element) in belonging:
            hosted.add(number)
    return hosted


def _place(element: Element, fields: tuple[str, ...]) -> tuple[object, ...]:
    return (fields[-1], *(getattr(element, field, None) for field in fields))


def _dependencies(
    targets: Sequence[Target], nodes: Sequence[GraphNode], paths: Sequence[tuple[int, ...]], release: Release
) -> Iterable[Dependency]:
    by_kind: dict[type[Element], list[int]] = defaultdict(list)
    for number, target in enumerate(targets):
        by_kind[type(target.element)].append(number)
    for rule in _rules_between(frozenset(by_kind), release):
        firsts = [
            n for n in _moments(rule.first, by_kind, targets, nodes, paths) if not _is_needless(rule.first, nodes[n])
        ]
        thens = _moments(rule.then, by_kind, targets, nodes, paths)
        if not firsts or not thens:
            continue
        names = [(name, name) if isinstance(name, str) else name for name in rule.join]
        table: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for node in firsts:
            for key in _keys(targets[nodes[node].target].element, [one for one, _ in names]):
                table[key].append(node)
        for node in thens:
            seen: set[int] = set()
            for key in _keys(targets[nodes[node].target].element, [other for _, other in names]):
                for first in table.get(key, ()):
                    if nodes[first].target != nodes[node].target and first not in seen:
                        seen.add(first)
                        yield Dependency(first, node, rule)


@lru_cache(maxsize=1_024)
def _rules_between(kinds: frozenset[type[Element]], release: Release) -> tuple[Rule, ...]:
    """The rules about two of these kinds."""
    return tuple(
        rule
        for rule in release.rules
        if not kinds.isdisjoint(rule.first.kinds) and not kinds.isdisjoint(rule.then.kinds)
    )


def _moments(
    at: At,
    by_kind: dict[type[Element], list[int]],
    targets: Sequence[Target],
    nodes: Sequence[GraphNode],
    paths: Sequence[tuple[int, ...]],
) -> list[int]:
    found = (
        _moment(at, targets[number], nodes, paths[number])
        for kind in at.kinds
        if kind in by_kind
        for number in by_kind[kind]
    )
    return [node for node in found if node is not None]


def _moment(at: At, target: Target, nodes: Sequence[GraphNode], path: tuple[int, ...]) -> int | None:
    """The node of the target that the rule speaks of; none, if it has been passed or is never reached."""
    match at:
        case Dropping():
            found = [n for n in path if nodes[n].status is Status.ABSENT]
        case Adding(status=Moment.FIRST):
            found = [n for n in path[:1] if target.adds and target.start is Status.ABSENT]
        case Adding(status=Moment.LAST):
            found = [n for n in path[-1:] if target.goal in (Goal.PUBLIC, Goal.ENFORCED)]
        case Adding(status=status):
            found = [n for n in path if target.adds and _is_among(status, (nodes[n].status, *nodes[n].passes))]
    return found[0] if found else None


def _is_needless(first: At, node: GraphNode) -> bool:
    """Whether work is left out that others would wait for: what it would show or make is so already."""
    return isinstance(first, Adding) and first.status in _WORK and _is_among(first.status, node.passes)


def _is_among(status: Status | Moment, statuses: Collection[Status]) -> bool:
    """Whether the status that a rule is about is one of these, or what stands in for it in a transaction block is."""
    return status in statuses or (isinstance(status, Status) and UNCOMMITTED.get(status, status) in statuses)


def _keys(element: Element, names: Sequence[str]) -> list[tuple[object, ...]]:
    keys: list[tuple[object, ...]] = [()]
    for name in names:
        values = field_values(element, name)
        keys = [(*key, value) for key in keys for value in values]
    return keys


def field_values(element: Element, name: str) -> tuple[object, ...]:
    if name == "descriptor_id":
        return (descriptor_of(element),)
    value = getattr(element, name, None)
    if value is None:
        return ()
    return value if name in _MANY else (value,)
