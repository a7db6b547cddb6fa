"""Plans as text, short enough to be read by the dozen."""

from dataclasses import fields

from seachange.model.elements import Element
from seachange.model.ops import SetState
from seachange.planner.plan import Plan
from seachange.planner.stages import Stage
from tests.planner.world import reverts

_SHOWN = ("column_id", "index_id", "constraint_id", "value_id", "name", "label", "role", "text")


def print_plan(plan: Plan) -> str:
    lines = [f"NOTICE: {notice}" for notice in plan.notices]
    for number, stage in enumerate(plan.stages, 1):
        lines += _stage(plan, number, stage)
    return "\n".join(lines or ["nothing to do"])


def print_reverts(plan: Plan) -> str:
    lines: list[str] = []
    for number, back in reverts(plan):
        lines.append(f"after stage {number}:")
        lines += [f"  {line}" for line in print_plan(back).splitlines()]
    return "\n".join(lines or ["no stage can be taken back"])


def _stage(plan: Plan, number: int, stage: Stage) -> list[str]:
    raises = f", raises {', '.join(map(str, stage.raises))}" if stage.raises else ""
    publishes = f", publishes {', '.join(map(str, stage.publishes))}" if stage.publishes else ""
    lines = [f"stage {number}: {stage.phase.value} {stage.type.value}{raises}{publishes}"]
    for transition in stage.transitions:
        element = plan.graph.targets[transition.target].element
        reason = plan.graph.nodes[transition.nodes[-1]].skipped
        note = f" ({reason})" if reason else ""
        lines.append(f"  {label(element)}: {transition.origin.value} -> {transition.status.value}{note}")
    lines += [f"  op {op}" for op in plan.ops(stage) if not isinstance(op, SetState)]
    return lines


def label(element: Element) -> str:
    known = {field.name: getattr(element, field.name) for field in fields(element)}
    shown = [str(known[name]) for name in _SHOWN if known.get(name) is not None]
    return " ".join([type(element).__name__, *shown])
