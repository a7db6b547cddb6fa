"""The session context of a transaction: its lock owner, cancellation flag and session state."""

from __future__ import annotations

from dataclasses import dataclass, field

from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.sequences import DrawnValues
from seachange.engine.context.temporary import TemporaryTables
from seachange.engine.locks.advisory import AdvisoryLocks


@dataclass(slots=True)
class SessionContext:
    """`actor` is unique within the node, and above 0 for sessions; `name` is shown to transactions that wait for it."""

    actor: int
    interrupts: SessionInterrupts = field(default_factory=SessionInterrupts)
    advisory: AdvisoryLocks = field(default_factory=AdvisoryLocks)
    drawn: DrawnValues = field(default_factory=DrawnValues)
    temporary: TemporaryTables = field(default_factory=TemporaryTables)

    @property
    def name(self) -> str:
        return f"session {self.actor}"


def driven_by_hand(ticket: int) -> SessionContext:
    """The context of a transaction without a session."""
    return SessionContext(-ticket - 1)
