"""The session context of a transaction: its lock owner, cancellation flag and session state."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.sequences import DrawnValues
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.model.ids import DescriptorId, TableId
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.statements import OnCommit
from seachange.sql.port.port import SchemaPort
from seachange.storage.plan import quote


@dataclass(slots=True)
class TemporaryTables:
    """The temporary tables of a session: ordinary tables of a schema of its own. `schema` is None until the session
    creates the first. What was rolled back may still be in `on_commit`."""

    schema: str | None = None
    on_commit: dict[TableId, OnCommit] = field(default_factory=dict)

    def statements(self, schema: SchemaPort, written: Container[DescriptorId]) -> Iterator[str]:
        """What a commit does besides; `written` are the tables that it may have written to."""
        for id_, action in list(self.on_commit.items()):
            table = schema.table_by_id(id_)
            if table is None or action is OnCommit.PRESERVE:
                continue
            name = f"{OWN_SCHEMA}.{quote(table.name)}"
            if action is OnCommit.DROP:
                yield f"drop table {name} cascade"
            elif id_ in written:
                yield f"delete from {name}"  # noqa: S608 - quoted


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
