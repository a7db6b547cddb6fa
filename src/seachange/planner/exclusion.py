"""Which changes of one descriptor wait for each other, as a table.

**Invariant:** of two changes of a descriptor that are under way, neither was planned from an element that the other
adds, alters or removes. Labels, which nothing is planned from, come and go beside any change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import FALLIBLE
from seachange.model.change.targets import Goal, Target
from seachange.model.ids import DescriptorId
from seachange.planner.elements.rule import OBJECTS, Kinds
from seachange.planner.graph import Skip, path_of
from seachange.planner.plan import Change
from seachange.planner.rules.release import release_of


class ChangeKind(StrEnum):
    """What a change is to one of the descriptors that it touches, from the lightest to the heaviest."""

    LABEL = "owner, privileges or comments"
    METADATA = "published by its COMMIT"
    BUILD = "only adds or validates indexes and constraints, by a job"
    WORK = "reads or writes rows otherwise, by a job"
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
_BESIDE = Exclusion(
    ExclusionDecision.PROCEED,
    "neither is planned from what the other adds, and which may not come about",
)
_NEEDED = Exclusion(ExclusionDecision.WAIT, "the result of the job is still wanted, with or without rows")
_IN_VAIN = Exclusion(ExclusionDecision.CANCEL, "whatever the job makes would go with the object")

_DURING_WORK = {
    ChangeKind.LABEL: _LABELS,
    ChangeKind.METADATA: _IN_TURN,
    ChangeKind.BUILD: _IN_TURN,
    ChangeKind.WORK: _IN_TURN,
    ChangeKind.TRUNCATE: _NEEDED,
    ChangeKind.DROP: _IN_VAIN,
}
# By what is under way (an open transaction or a job that was not published yet), then by what is new.
EXCLUSIONS: dict[ChangeKind, dict[ChangeKind, Exclusion]] = {
    ChangeKind.LABEL: dict.fromkeys(ChangeKind, _LABELS),
    ChangeKind.METADATA: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
    ChangeKind.BUILD: {**_DURING_WORK, ChangeKind.BUILD: _BESIDE},
    ChangeKind.WORK: _DURING_WORK,
    ChangeKind.TRUNCATE: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
    ChangeKind.DROP: {**dict.fromkeys(ChangeKind, _AFTER_COMMIT), ChangeKind.LABEL: _LABELS},
}
_ASKED_FOR = Exclusion(ExclusionDecision.CANCEL, "that is what it asks for")
_TOO_LATE = Exclusion(
    ExclusionDecision.WAIT, "the other is past its point of no return, or belongs to a transaction block that decides"
)


def decide(
    running: ChangeKind, new: ChangeKind | CancelJob, cancellable: bool = True, independent: bool = True
) -> Exclusion:
    """What becomes of the new change. `cancellable`: what is under way has not passed its point of no return;
    `independent`: neither belongs to a transaction block, which changes its tables alone, and nothing is in both."""
    found = _ASKED_FOR if isinstance(new, CancelJob) else EXCLUSIONS[running][new]
    if found is _BESIDE and not independent:
        return _IN_TURN
    return _TOO_LATE if found.answer is ExclusionDecision.CANCEL and not cancellable else found


_LABEL_KINDS: Kinds = (elements.Owner, elements.Privileges, elements.Comment)
# What a change may add beside another one that adds such elements: nothing is planned from one that is not public.
BUILT_KINDS: Kinds = (
    elements.SecondaryIndex,
    elements.UniqueIndex,
    elements.IndexName,
    elements.IndexData,
    elements.KeyConstraint,
    elements.CheckConstraint,
    elements.ForeignKeyElement,
    elements.ForeignKeyParent,
    elements.ConstraintName,
    elements.ColumnNotNull,
)


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
        return ChangeKind.BUILD if _only_builds([t for _, t in touched]) else ChangeKind.WORK
    if all(isinstance(t.element, _LABEL_KINDS) for _, t in touched):
        return ChangeKind.LABEL
    return ChangeKind.METADATA


def _only_builds(targets: Sequence[Target]) -> bool:
    """Whether indexes and constraints are added, or validated. The key of an index may be a hidden column of its own,
    which is computed from others."""
    keys = {e.column_id for e in (t.element for t in targets) if isinstance(e, elements.ColumnElement) and e.hidden}
    return all(
        t.goal in (Goal.PUBLIC, Goal.ENFORCED)
        and (isinstance(t.element, BUILT_KINDS) or getattr(t.element, "column_id", None) in keys)
        for t in targets
    )


def are_disjoint(one: Change, other: Change) -> bool:
    """Whether no element, no name of an index or constraint and no new id of a constraint or column is in both."""
    return not _entries(one) & _entries(other)


def _entries(change: Change) -> set[object]:
    found = [target.element for target in change.targets]
    names = {(e.table_id, e.name) for e in found if isinstance(e, elements.IndexName | elements.ConstraintName)}
    columns = {(e.table_id, e.column_id) for e in found if isinstance(e, elements.ColumnElement)}
    constraints = {(type(e), e.table_id, e.constraint_id) for e in found if isinstance(e, elements.ConstraintName)}
    return {*found, *names, *columns, *constraints}


def _is_emptied(element: Element) -> bool:
    """Whether it is a primary index without rows in the place of one that had some."""
    return isinstance(element, elements.PrimaryIndex) and element.built and element.replaces_id is not None


def _needs_rows(target: Target, skip: Skip | None, change: Change) -> bool:
    skipped = skip.statuses if skip is not None else frozenset()
    path = path_of(target, release_of(change.release), change.in_block)
    return any(step.op in FALLIBLE and step.to not in skipped for _, step in path)
