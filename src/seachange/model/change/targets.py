"""Targets: an element and where it shall go; statuses: how far it has come.

A status is a state together with the work that was done in it. Several statuses may stand for one state: statements
only know the state, the plan knows the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seachange.model.change.elements import Element
from seachange.model.states import State


class Status(StrEnum):
    ABSENT = "ABSENT"
    DELETE_ONLY = "DELETE_ONLY"
    WRITE_ONLY = "WRITE_ONLY"
    # Of an index: every row has its entry.
    BACKFILLED = "BACKFILLED"
    VALIDATING = "VALIDATING"
    ENFORCED = "ENFORCED"
    # Of a constraint: every row meets it.
    VALIDATED = "VALIDATED"
    # Of a constraint in a transaction block: every row met it, under the block's own rows, when they were read.
    PROVEN = "PROVEN"
    PUBLIC = "PUBLIC"


STATE_OF: dict[Status, State] = {
    Status.ABSENT: State.ABSENT,
    Status.DELETE_ONLY: State.DELETE_ONLY,
    Status.WRITE_ONLY: State.WRITE_ONLY,
    Status.BACKFILLED: State.WRITE_ONLY,
    Status.VALIDATING: State.VALIDATING,
    Status.ENFORCED: State.ENFORCED,
    Status.VALIDATED: State.ENFORCED,
    Status.PROVEN: State.VALIDATING,
    Status.PUBLIC: State.PUBLIC,
}


# What stands in for a status that rejects rows until the transaction block that adds the constraint commits. A rule
# about the one holds for the other.
UNCOMMITTED: dict[Status, Status] = {Status.ENFORCED: Status.VALIDATING, Status.VALIDATED: Status.PROVEN}


class Goal(StrEnum):
    """Where a target shall be at the end. A transient one is there only for the duration of the change; a hidden one is
    made public by another change."""

    PUBLIC = "PUBLIC"
    HIDDEN = "HIDDEN"
    ENFORCED = "ENFORCED"
    ABSENT = "ABSENT"
    TRANSIENT = "TRANSIENT"


GOAL_STATUS: dict[Goal, Status] = {
    Goal.PUBLIC: Status.PUBLIC,
    Goal.HIDDEN: Status.WRITE_ONLY,
    Goal.ENFORCED: Status.ENFORCED,
    Goal.ABSENT: Status.ABSENT,
    Goal.TRANSIENT: Status.ABSENT,
}


@dataclass(frozen=True, slots=True)
class Target:
    """`start` is where the element is before the change; `statement` the number of the statement that asked for it."""

    element: Element
    goal: Goal
    start: Status
    statement: int = 0

    @property
    def adds(self) -> bool:
        return self.goal is not Goal.ABSENT
