"""The states of a schema element, and what each allows a statement to do.

`BEHAVIOUR` is the only definition: writes execute it, the planner plans with it, the model checker proves it.

**Invariant:** what a write does to an element follows from the element's state in the version that the write was
planned with. An index is maintained and its unique keys declared before any writer checks it, and checked before it is
read; a foreign key's children declare their parents' keys before any writer checks; a column is filled before it is
visible; a new primary index is written, and conflicts, next to the current one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    ABSENT = "ABSENT"
    DELETE_ONLY = "DELETE_ONLY"
    WRITE_ONLY = "WRITE_ONLY"
    ENFORCED = "ENFORCED"
    VALIDATING = "VALIDATING"
    PUBLIC = "PUBLIC"


class Checking(StrEnum):
    """What happens to a row that violates a constraint, or that has no value of a column's new type."""

    NONE = "nothing"
    RECORDED = "recorded, and fails the change"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """`removes`: entries of old row versions are deleted; `writes`: entries (values, keys) of new ones are written."""

    reads: bool
    removes: bool
    writes: bool
    checks: Checking


BEHAVIOUR: dict[State, Behaviour] = {
    State.ABSENT: Behaviour(reads=False, removes=False, writes=False, checks=Checking.NONE),
    State.DELETE_ONLY: Behaviour(reads=False, removes=True, writes=False, checks=Checking.NONE),
    State.WRITE_ONLY: Behaviour(reads=False, removes=True, writes=True, checks=Checking.NONE),
    State.ENFORCED: Behaviour(reads=False, removes=True, writes=True, checks=Checking.REFUSED),
    State.VALIDATING: Behaviour(reads=False, removes=True, writes=True, checks=Checking.RECORDED),
    State.PUBLIC: Behaviour(reads=True, removes=True, writes=True, checks=Checking.REFUSED),
}

# The states in which a constraint rejects rows.
REFUSING = frozenset(state for state, behaviour in BEHAVIOUR.items() if behaviour.checks is Checking.REFUSED)
# The states in which rows that violate a constraint are recorded.
RECORDING = frozenset(state for state, behaviour in BEHAVIOUR.items() if behaviour.checks is Checking.RECORDED)
# The states in which statements may use an element.
READABLE = frozenset(state for state, behaviour in BEHAVIOUR.items() if behaviour.reads)
# The states in which writers maintain an element for others to check or read.
WRITTEN = frozenset(state for state, behaviour in BEHAVIOUR.items() if behaviour.writes)
