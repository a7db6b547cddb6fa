"""EXPLAIN (DDL): phases, stages, what each waits for, and what changes in it."""

from __future__ import annotations

from collections.abc import Iterator

from seachange.model.change.targets import Goal
from seachange.planner.explain.names import Names
from seachange.planner.explain.outline import StageView, indent, view_stages
from seachange.planner.explain.subjects import subjects
from seachange.planner.explain.words import (
    LEGEND,
    bytes_in_words,
    count_of,
    enumerate_words,
    ops_in_words,
    status_name,
    waits,
)
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Transition
from seachange.planner.strategy import measure, strategy_of_all

NOTHING = "Nothing to do."

_DIRECTIONS: dict[Goal, str] = {
    Goal.PUBLIC: "toward PUBLIC",
    Goal.HIDDEN: "toward WRITE_ONLY (hidden)",
    Goal.ENFORCED: "toward ENFORCED (not valid yet)",
    Goal.TRANSIENT: "there for the duration of the change",
    Goal.ABSENT: "toward ABSENT",
}


def explain_stages(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    return StagesText(plan, catalog).lines()


class StagesText:
    """What VERBOSE adds comes in through `reasons` and `ops`."""

    def __init__(self, plan: ChangePlan, catalog: KnownSchema) -> None:
        self.plan = plan
        self.catalog = catalog
        self.names = Names(plan, catalog)

    def lines(self) -> list[str]:
        if not self.plan.stages:
            return [NOTHING]
        found = [summary(self.plan, self.catalog), *statement_phase(self.plan, self.names)]
        phase = Phase.STATEMENT
        for view in view_stages(self.plan, self.catalog):
            if view.stage.phase is not phase:
                phase = view.stage.phase
                found.append(f"Phase {phase.value}")
            found += indent(self._stage(view))
        return found + self._legend()

    def _stage(self, view: StageView) -> list[str]:
        stage = view.stage
        waited = waits(stage, self.names, view.before)
        begun_by = "the publication of the first change" if self.plan.follows else "COMMIT"
        by = {Phase.PRE_COMMIT: f", a part of {begun_by}", Phase.STATEMENT: ", by a child transaction"}
        lines = [f"{view.title}: {stage.type.value}{by.get(stage.phase, '')}"]
        if view.is_no_return:
            lines += indent([_no_return(view, self.plan)])
        lines += indent([f"waits for {enumerate_words(waited)}" if waited else "waits for nothing"])
        for goal, direction in _DIRECTIONS.items():
            moved = [t for t in stage.transitions if self.plan.graph.targets[t.target].goal is goal]
            if moved:
                lines += indent([f"{direction}: {count_of(len(moved), 'element')}"])
                lines += indent([line for t in moved for line in self._transition(t)], 2)
        lines += indent(["ops", *indent(self.ops(view))])
        return lines

    def _transition(self, transition: Transition) -> Iterator[str]:
        element = self.plan.graph.targets[transition.target].element
        yield f"{self.names.label(element)}: {status_name(transition.origin)} -> {status_name(transition.status)}"
        for number in transition.nodes:
            node = self.plan.graph.nodes[number]
            if node.passes:
                passed = enumerate_words([status_name(status) for status in node.passes])
                yield f"  skips {passed}: {node.skipped}"
        yield from indent(list(self.reasons(transition)))

    def reasons(self, _transition: Transition) -> Iterator[str]:
        """Why the transition is in this stage and not in an earlier one."""
        yield from ()

    def ops(self, view: StageView) -> list[str]:
        found = ops_in_words(self.plan.ops(view.stage), self.names, view.after)
        return found + (self._conditions() if view.is_no_return else [])

    def _conditions(self) -> list[str]:
        """What the publication is sure of besides."""
        change = self.plan.change
        empty = [f"check that {self.names.descriptor(id_)} has no rows still" for id_ in sorted(change.empty)]
        fenced = [
            f"accept no commit planned with an older version of {self.names.descriptor(id_)}"
            for id_ in sorted(change.fenced)
        ]
        return empty + fenced

    def _legend(self) -> list[str]:
        used = {status for stage in self.plan.stages for t in stage.transitions for status in (t.origin, t.status)}
        return [text for status, text in LEGEND.items() if status in used]


def summary(plan: ChangePlan, catalog: KnownSchema) -> str:
    cost = measure(plan, catalog)
    later = ", and once more before data is deleted" if cost.late_drains else ""
    moved = bytes_in_words(cost.bytes_moved) if cost.bytes_moved is not None else "an unknown number of bytes"
    return (
        f"{count_of(len(plan.stages), 'stage')}: {count_of(cost.versions, 'version')} published, "
        f"{cost.drains} waited for{later}; {cost.strategy.value}, moves {moved}"
    )


def statement_phase(plan: ChangePlan, names: Names) -> list[str]:
    """What the transaction sees of its own change before it commits."""
    if plan.follows:
        return []
    words: dict[bool, list[str]] = {True: [], False: []}
    for subject in subjects(plan, names):
        if subject.goal is not Goal.TRANSIENT:
            words[subject.adds].append(f"{subject.label} ({strategy_of_all(subject.targets, plan.graph).value})")
    lines = [f"Phase {Phase.STATEMENT.value}: visible to this transaction only"]
    lines += [f"  comes: {', '.join(words[True])}"] if words[True] else []
    lines += [f"  goes: {', '.join(words[False])}"] if words[False] else []
    return lines


def _no_return(view: StageView, plan: ChangePlan) -> str:
    if plan.then is not None:
        return "publication of what comes first; a cancel takes it back until the second change is published"
    if view.stage.phase is Phase.PRE_COMMIT:
        return "point of no return: the COMMIT itself; ROLLBACK leaves nothing"
    leaves = "nothing of both changes" if plan.follows else "nothing of it"
    return f"point of no return: the publication, visible to all sessions; a cancel before it leaves {leaves}"
