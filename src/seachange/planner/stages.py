"""Stages: which steps are taken together, in which phase, and what is waited for between them.

Greedy to a fixpoint: a stage takes every step of one type that the rules allow. What can fail comes first, what
publishes a version last, so that there are few versions and no work is done in vain.

**Invariant:** a step that cannot be reverted is taken only when nothing is left in the plan that can fail.

**Invariant:** a fenced step is taken only in a stage before which the versions of its descriptor were drained and
`min_version` was raised since the status that it starts from was published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import FALLIBLE, OpType
from seachange.model.change.targets import STATE_OF, Status, Target
from seachange.model.ids import DescriptorId
from seachange.planner.elements.rule import RuleOrder
from seachange.planner.graph import Graph


class Phase(StrEnum):
    """STATEMENT: what the transaction sees of its own change at once, and the work that its block does for it by child
    transactions; PRE_COMMIT: in its commit; POST_COMMIT: by a job that can be cancelled; NON_REVERTIBLE: by a job that
    cannot."""

    STATEMENT = "statement"
    PRE_COMMIT = "pre-commit"
    POST_COMMIT = "post-commit"
    NON_REVERTIBLE = "post-commit non-revertible"


# What is tried first: work that can fail, the cheaper one before the dearer one.
_PREFERENCE = (
    OpType.VALIDATION,
    OpType.RESTORATION,
    OpType.BACKFILL,
    OpType.MUTATION,
    OpType.COLLECTION,
)


@dataclass(frozen=True, slots=True)
class Transition:
    target: int
    origin: Status
    status: Status
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """`raises` are the descriptors whose writers are waited for, and fenced, before the stage; `publishes` those that
    get a new version by it."""

    phase: Phase
    type: OpType
    transitions: tuple[Transition, ...]
    raises: tuple[DescriptorId, ...] = ()
    publishes: tuple[DescriptorId, ...] = ()
    # Whether it is the one from which on everybody sees the change.
    is_publication: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a change has come: the status of each target, and the descriptors of which a version has been published
    since the last raise."""

    statuses: tuple[Status, ...]
    unfenced: frozenset[DescriptorId] = frozenset()


class PlanningError(AssertionError):
    """The rules contradict each other: our mistake, never the user's."""


def build_stages(graph: Graph, first_phase: Phase, unfenced: Iterable[DescriptorId] = ()) -> tuple[Stage, ...]:
    builder = _Builder(graph, set(unfenced))
    stages: list[Stage] = []
    phase = first_phase
    while not builder.is_done:
        stage = builder.next_stage(phase)
        if stage is None:
            raise PlanningError(builder.describe_stuck())
        stages.append(stage)
        phase = builder.phase_after(stage)
    return tuple(stages)


def unfenced_at_first(targets: Iterable[Target]) -> frozenset[DescriptorId]:
    """The descriptors of what a change finds half way: a constraint that is not valid was published at some time, but
    no drain has waited for the writers to know of it."""
    ends = (Status.ABSENT, Status.PUBLIC)
    return frozenset(descriptor_of(t.element) for t in targets if t.adds and t.start not in ends)


def progress_after(graph: Graph, stages: Sequence[Stage]) -> Progress:
    """Where the targets of a change are when these, its first stages, are done."""
    statuses = [target.start for target in graph.targets]
    open_ = set(unfenced_at_first(graph.targets))
    for stage in stages:
        open_ -= set(stage.raises)
        open_ |= set(stage.publishes)
        for transition in stage.transitions:
            statuses[transition.target] = transition.status
    return Progress(tuple(statuses), frozenset(open_))


def _awaited_first(graph: Graph) -> set[int]:
    """Steps that everybody has to know before one that cannot be reverted: else a part of the publication would come
    before it, and the rest after everybody has seen that part."""
    nodes = graph.nodes
    pairs = (pair for path in graph.paths for pair in pairwise(path))
    return {
        before
        for before, node in pairs
        if nodes[before].step.revertible
        and nodes[node].step.fenced
        and nodes[node].step.op is OpType.MUTATION
        and not nodes[node].step.revertible
    }


class _Builder:
    """What has been done so far: `done` holds nodes of earlier stages, `taken` those of the one that is being built."""

    def __init__(self, graph: Graph, unfenced: set[DescriptorId]) -> None:
        self._graph = graph
        self._unfenced = unfenced
        self._next = [0] * len(graph.paths)
        self._done: set[int] = set()
        self._taken: dict[int, None] = {}
        self._descriptors = [descriptor_of(target.element) for target in graph.targets]
        self._fallible_left = sum(node.step.op in FALLIBLE for node in graph.nodes)
        self._awaited = _awaited_first(graph)

    @property
    def is_done(self) -> bool:
        return len(self._done) == len(self._graph.nodes)

    def phase_after(self, stage: Stage) -> Phase:
        """What follows a step that cannot be reverted, or consists of such steps only, cannot be cancelled."""
        if stage.phase is Phase.STATEMENT:
            return stage.phase
        nodes = self._graph.nodes
        left = [n for n in range(len(nodes)) if n not in self._done]
        passed = any(not nodes[n].step.revertible for t in stage.transitions for n in t.nodes)
        if stage.phase is Phase.NON_REVERTIBLE or passed or (left and self._only_irreversible_left(left)):
            return Phase.NON_REVERTIBLE
        return Phase.POST_COMMIT

    def _only_irreversible_left(self, left: Sequence[int]) -> bool:
        return not self._fallible_left and not any(self._graph.nodes[n].step.revertible for n in left)

    def next_stage(self, phase: Phase) -> Stage | None:
        allowed = (OpType.MUTATION,) if phase is Phase.PRE_COMMIT else _PREFERENCE
        for type_ in allowed:
            self._fill(type_)
            if self._taken:
                return self._finish(phase, type_)
        return self.next_stage(Phase.POST_COMMIT) if phase is Phase.PRE_COMMIT else None

    def _fill(self, type_: OpType) -> None:
        progress = True
        while progress:
            progress = False
            for path, position in zip(self._graph.paths, self._next, strict=True):
                if position < len(path) and path[position] not in self._taken:
                    for node in self._collect(path[position], type_):
                        self._taken[node] = None
                        self._next[self._graph.nodes[node].target] += 1
                        progress = True

    def _collect(self, node: int, type_: OpType) -> dict[int, None]:
        """The steps that are taken with this one, if it can be taken now: what has to be done before it, and what goes
        in the same stage. A loop and not a recursion: thousands may hang together."""
        group: dict[int, None] = {}
        left = [node]
        while left:
            node = left.pop()
            if node in self._taken or node in self._done or node in group:
                continue
            if not self._is_next(node) or not self._is_allowed(node, type_):
                return {}
            group[node] = None
            left += reversed(self._graph.companions[node])
            for dependency in reversed(self._graph.required[node]):
                if dependency.rule.order is RuleOrder.BEFORE:
                    left.append(dependency.first)
                elif dependency.rule.order is RuleOrder.EARLIER and dependency.first not in self._done:
                    return {}
        return group

    def _is_next(self, node: int) -> bool:
        target = self._graph.nodes[node].target
        return self._graph.paths[target][self._next[target]] == node

    def _is_allowed(self, number: int, type_: OpType) -> bool:
        node = self._graph.nodes[number]
        if node.step.op is not type_:
            return False
        if not node.step.revertible and (self._fallible_left or self._awaited):
            return False
        # The status that it starts from must have been seen by everybody, so it must be older than this stage.
        return not (node.step.fenced and self._is_fresh(number))

    def _is_fresh(self, number: int) -> bool:
        path = self._graph.paths[self._graph.nodes[number].target]
        position = path.index(number)
        return position > 0 and path[position - 1] in self._taken

    def _finish(self, phase: Phase, type_: OpType) -> Stage:
        nodes = self._graph.nodes
        grouped: dict[int, list[int]] = {}
        for node in self._taken:
            grouped.setdefault(nodes[node].target, []).append(node)
        fenced = {self._descriptors[nodes[n].target] for n in self._taken if nodes[n].step.fenced}
        transitions = tuple(
            Transition(target, nodes[taken[0]].origin, nodes[taken[-1]].status, tuple(taken))
            for target, taken in grouped.items()
        )
        raises = sorted(fenced & self._unfenced)
        changed = {self._descriptors[t.target] for t in transitions if STATE_OF[t.origin] is not STATE_OF[t.status]}
        publishes = sorted(changed) if type_ is OpType.MUTATION else []
        publication = type_ is OpType.MUTATION and any(not nodes[n].step.revertible for n in self._taken)
        self._fallible_left -= sum(nodes[n].step.op in FALLIBLE for n in self._taken)
        self._unfenced -= set(raises)
        self._unfenced |= set(publishes)
        self._done |= set(self._taken)
        self._awaited -= set(self._taken)
        self._taken = {}
        if publication and phase is Phase.STATEMENT:
            phase = Phase.PRE_COMMIT
        return Stage(phase, type_, transitions, tuple(raises), tuple(publishes), publication)

    def describe_stuck(self) -> str:
        nodes = self._graph.nodes
        lines = []
        for path, position in zip(self._graph.paths, self._next, strict=True):
            if position < len(path):
                node = nodes[path[position]]
                waits = [
                    f"{d.rule.name} (for {self._graph.targets[nodes[d.first].target].element})"
                    for d in self._graph.required[path[position]]
                    if d.first not in self._done
                ]
                lines.append(f"{self._graph.targets[node.target].element} to {node.status}: {'; '.join(waits) or '?'}")
        return "no step can be taken:\n" + "\n".join(lines)
