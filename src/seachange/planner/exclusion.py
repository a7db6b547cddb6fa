"""Which changes of one descriptor wait for each other, as a table.

**Invariant:** at most one change of a descriptor is under way that was planned from its elements; labels, which nothing
is planned from, come and go beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import FALLIBLE
from seachange.model.change.targets import Target
from seachange.model.ids import DescriptorId
from seachange.planner.elements.rule import OBJECTS, Kinds
from seachange.planner.graph import Skip, path_of
from seachange.planner.plan import Change
from seachange.planner.rules.release import release_of


class ChangeKind(StrEnum):
    """What a change is to one of the descriptors that it touches, from the lightest to the heaviest."""

    LABEL = "owner, privileges or comments"
    METADATA = "published by its COMMIT"
    WORK = "reads or writes rows, by a job"
    TRUNCATE = "leaves no rows"
    DROP = "leaves nothing"


class CancelJob:
    """What CANCEL JOB is to the change that it names: not a change itself."""


class ExclusionDecision(StrEnum):
    PROCEED = "proceeds"
    WAIT = "waits"
    # Only by way of CANCEL: the running change is reverted, and the new one proceeds.
    CANCEL = "cancels the other"


@dataclass(frozen=True, slots=True)
class Exclusion:
    answer: ExclusionDecision
    reason: str


_LABELS = Exclusion(
    ExclusionDecision.PROCEED, "nothing is planned from a label, and a version is made of what it finds"
)
_AFTER_COMMIT = Exclusion(
    ExclusionDecision.WAIT, "the other transaction may still be rolled back; its COMMIT does not wait"
)
_IN_TURN = Exclusion(ExclusionDecision.WAIT, "what it would be planned from may be changed, or reverted, by the job")
_NEEDED = Exclusion(ExclusionDecision.WAIT, "the result of the job is still wanted, with or without rows")
_IN_VAIN = Exclusion(ExclusionDecision.CANCEL, "whatever the job makes would go with the object")

# By what is under way (an open transaction or a job that was not published yet), then by what is new.
EXCLUSIONS: dict[ChangeKind, dict[ChangeKind, Exclusion]] = {
    ChangeKind.LABEL: dict.fromkeys(ChangeKind, _LABELS),
    ChangeKind.METADATA: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
    ChangeKind.WORK: {
        ChangeKind.LABEL: _LABELS,
        ChangeKind.METADATA: _IN_TURN,
        ChangeKind.WORK: _IN_TURN,
        ChangeKind.TRUNCATE: _NEEDED,
        ChangeKind.DROP: _IN_VAIN,
    },
    ChangeKind.TRUNCATE: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
    ChangeKind.DROP: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
}
_ASKED_FOR = Exclusion(ExclusionDecision.CANCEL, "that is what it asks for")
_TOO_LATE = Exclusion(
    ExclusionDecision.WAIT, "the other is past its point of no return, or belongs to a transaction block that decides"
)


def decide(running: ChangeKind, new: ChangeKind | CancelJob, cancellable: bool = True) -> Exclusion:
    """What becomes of the new change. `cancellable`: what is under way has not passed its point of no return."""
    found = _ASKED_FOR if isinstance(new, CancelJob) else EXCLUSIONS[running][new]
    return _TOO_LATE if found.answer is ExclusionDecision.CANCEL and not cancellable else found


_LABEL_KINDS: Kinds = (elements.Owner, elements.Privileges, elements.Comment)


def classify(change: Change, descriptor_id: DescriptorId) -> ChangeKind | None:
    """What the change is to this descriptor; None if it does not touch it."""
    touched = [(n, t) for n, t in enumerate(change.targets) if descriptor_of(t.element) == descriptor_id]
    if not touched:
        return None
    if any(isinstance(t.element, OBJECTS) and not t.adds for _, t in touched):
        return ChangeKind.DROP
    if any(t.adds and _is_emptied(t.element) for _, t in touched):
        return ChangeKind.TRUNCATE
    if any(_needs_rows(target, change.skips.get(number), change) for number, target in touched):
        return ChangeKind.WORK
    if all(isinstance(t.element, _LABEL_KINDS) for _, t in touched):
        return ChangeKind.LABEL
    return ChangeKind.METADATA


def _is_emptied(element: Element) -> bool:
    """Whether it is a primary index without rows in the place of one that had some."""
    return isinstance(element, elements.PrimaryIndex) and element.built and element.replaces_id is not None


def _needs_rows(target: Target, skip: Skip | None, change: Change) -> bool:
    skipped = skip.statuses if skip is not None else frozenset()
    path = path_of(target, release_of(change.release), change.in_block)
    return any(step.op in FALLIBLE and step.to not in skipped for _, step in path)
