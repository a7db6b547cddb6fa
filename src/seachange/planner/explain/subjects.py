"""What a change is about, in the user's words: columns, indexes, constraints, tables; not their parts."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import Goal
from seachange.planner.explain.names import Names, Place
from seachange.planner.plan import ChangePlan

# What is shown with another: an index's data with the index, the parent's end with the foreign key.
_SILENT = (elements.IndexData, elements.ForeignKeyParent)


@dataclass(frozen=True, slots=True)
class ExplainedSubject:
    """`targets` are the numbers of those that it stands for, `host` is the one that it is named after."""

    label: str
    goal: Goal
    host: int
    targets: tuple[int, ...]

    @property
    def adds(self) -> bool:
        return self.goal is not Goal.ABSENT


def subjects(plan: ChangePlan, names: Names) -> list[ExplainedSubject]:
    targets = plan.graph.targets
    hosts = find_hosts(plan, names)
    groups: dict[int, list[int]] = {}
    for number in range(len(targets)):
        groups.setdefault(hosts.get(number, number), []).append(number)
    return [
        ExplainedSubject(names.label(targets[host].element), targets[host].goal, host, tuple(numbers))
        for host, numbers in groups.items()
        if not isinstance(targets[host].element, _SILENT)
    ]


def find_hosts(plan: ChangePlan, names: Names) -> dict[int, int]:
    """For each target that comes or goes as a part of another, the number of that one."""
    by_place: dict[tuple[Place, bool], int] = {}
    for number, target in enumerate(plan.graph.targets):
        if names.is_host(target.element):
            by_place[(names.host(target.element), target.adds)] = number
    found: dict[int, int] = {}
    for number, target in enumerate(plan.graph.targets):
        place = _whole(target.element) or names.host(target.element)
        host = by_place.get((place, target.adds))
        if host is None:
            host = by_place.get((names.host(target.element), target.adds))
        if host is not None and host != number:
            found[number] = host
    # A part of a part goes by the whole.
    return {number: found.get(host, host) for number, host in found.items()}


def _whole(element: Element) -> Place | None:
    """An object that comes or goes takes all its parts with it; the parent's end is a part of the child's."""
    return None if isinstance(element, elements.ForeignKeyParent) else ("descriptor_id", descriptor_of(element))
