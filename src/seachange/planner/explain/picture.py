"""EXPLAIN (DDL, VIZ): stages and dependencies as DOT and as Mermaid.

The parts of what comes or goes in the same stage (a column's name, an index's data) are left out, so that the picture
stays one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from seachange.model.change.targets import Goal
from seachange.planner.explain.names import Names
from seachange.planner.explain.outline import StageView, view_stages
from seachange.planner.explain.subjects import find_hosts
from seachange.planner.explain.words import enumerate_words, status_name
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan


@dataclass(frozen=True, slots=True)
class Box:
    """A transition; `label` in lines."""

    id: str
    label: tuple[str, ...]
    goal: Goal


@dataclass(frozen=True, slots=True)
class StageBox:
    id: str
    title: tuple[str, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """`rule` is empty between the steps of one element."""

    start: str
    end: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    frames: tuple[StageBox, ...]
    arrows: tuple[Arrow, ...]


def explain_picture(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    picture = draw(plan, catalog)
    return [*dot(picture), "", *mermaid(picture)]


def draw(plan: ChangePlan, catalog: KnownSchema) -> Picture:
    names = Names(plan, catalog)
    hosts = find_hosts(plan, names)
    boxes_of: dict[int, str] = {}
    frames = []
    for number, view in enumerate(view_stages(plan, catalog), 1):
        moving = {t.target for t in view.stage.transitions}
        boxes: list[Box] = []
        for transition in view.stage.transitions:
            if hosts.get(transition.target) in moving:
                continue
            target = plan.graph.targets[transition.target]
            box = Box(
                f"s{number}_{len(boxes) + 1}",
                (names.label(target.element), f"{status_name(transition.origin)} → {status_name(transition.status)}"),
                target.goal,
            )
            boxes.append(box)
            boxes_of |= dict.fromkeys(transition.nodes, box.id)
        frames.append(StageBox(f"stage{number}", _title(view, names), tuple(boxes)))
    return Picture(tuple(frames), tuple(_arrows(plan, boxes_of)))


def _title(view: StageView, names: Names) -> tuple[str, ...]:
    drained = [f"{names.descriptor(id_)} version {view.before[id_]}" for id_ in view.stage.raises]
    published = [f"{names.descriptor(id_)} version {view.after[id_]}" for id_ in view.stage.publishes]
    notes = [view.title, view.stage.type.value]
    notes += [f"after a drain of {enumerate_words(drained)}"] if drained else []
    notes += [f"publishes {enumerate_words(published)}"] if published else []
    notes += ["the point of no return"] if view.is_no_return else []
    return (notes[0], ", ".join(notes[1:]))


def _arrows(plan: ChangePlan, boxes: dict[int, str]) -> list[Arrow]:
    found: dict[Arrow, None] = {}
    for path in plan.graph.paths:
        for one, other in pairwise(path):
            if one in boxes and other in boxes and boxes[one] != boxes[other]:
                found[Arrow(boxes[one], boxes[other])] = None
    for dependency in plan.graph.dependencies:
        first, then = boxes.get(dependency.first), boxes.get(dependency.then)
        if first is not None and then is not None and first != then:
            found[Arrow(first, then, dependency.rule.name)] = None
    return list(found)


# DOT.

_DOT_COLOURS: dict[Goal, str] = {
    Goal.PUBLIC: "palegreen",
    Goal.HIDDEN: "palegreen",
    Goal.ENFORCED: "palegreen",
    Goal.TRANSIENT: "lightyellow",
    Goal.ABSENT: "mistyrose",
}


def dot(picture: Picture) -> list[str]:
    lines = ["digraph change {", "  rankdir=TB;", '  node [shape=box, style=filled, fontname="sans-serif"];']
    for frame in picture.frames:
        lines += [f"  subgraph cluster_{frame.id} {{", f"    label={_dot_text(frame.title)};"]
        for box in frame.boxes:
            lines.append(f"    {box.id} [label={_dot_text(box.label)}, fillcolor={_DOT_COLOURS[box.goal]}];")
        lines.append("  }")
    for arrow in picture.arrows:
        style = f" [style=dashed, label={_dot_text((arrow.rule,))}]" if arrow.rule else ""
        lines.append(f"  {arrow.start} -> {arrow.end}{style};")
    return [*lines, "}"]


def _dot_text(lines: tuple[str, ...]) -> str:
    # A backslash would begin an escape, of which there are more than one would think (\N is the node's name).
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'


# Mermaid.

_MERMAID_CLASSES: dict[Goal, str] = {
    Goal.PUBLIC: "comes",
    Goal.HIDDEN: "comes",
    Goal.ENFORCED: "comes",
    Goal.TRANSIENT: "passes",
    Goal.ABSENT: "goes",
}
_MERMAID_STYLES = (
    "  classDef comes fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    "  classDef passes fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "  classDef goes fill:#ffebe9,stroke:#cf222e,color:#1f2328",
)


def mermaid(picture: Picture) -> list[str]:
    lines = ["flowchart TB"]
    for frame in picture.frames:
        lines.append(f"  subgraph {frame.id}[{_mermaid_text(frame.title)}]")
        lines += [f"    {box.id}[{_mermaid_text(box.label)}]:::{_MERMAID_CLASSES[box.goal]}" for box in frame.boxes]
        lines.append("  end")
    for arrow in picture.arrows:
        link = f"-. {_mermaid_text((arrow.rule,))} .->" if arrow.rule else "-->"
        lines.append(f"  {arrow.start} {link} {arrow.end}")
    # Stages without an element in common are kept in order all the same.
    lines += [f"  {one.id} ~~~ {other.id}" for one, other in pairwise(picture.frames)]
    return [*lines, *_MERMAID_STYLES]


def _mermaid_text(lines: tuple[str, ...]) -> str:
    return '"' + "<br/>".join(_mermaid_escape(line) for line in lines) + '"'


def _mermaid_escape(text: str) -> str:
    """Everything but letters, digits and harmless signs as a character reference, which Mermaid writes with `#`."""
    return "".join(c if c.isalnum() or c in _MERMAID_PLAIN else f"#{ord(c)};" for c in text)


_MERMAID_PLAIN = frozenset(" _.,:'()+-→/")
