"""A session, as other threads see, cancel and end it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seachange import errors
from seachange.engine.replica.open_sessions import ClientLink
from seachange.engine.session.session_state import BlockState, TransactionStatus
from seachange.engine.session.statement_guard import Guard
from seachange.model.sessions import SessionActivity, SessionRecord
from seachange.sql.settings.session_settings import SessionSettings

# Of a session that runs no statement.
_STATES = {
    TransactionStatus.IDLE: SessionActivity.IDLE,
    TransactionStatus.OPEN: SessionActivity.IN_TRANSACTION,
    TransactionStatus.FAILED: SessionActivity.FAILED,
}


@dataclass(slots=True, weakref_slot=True)
class SessionMonitor:
    """`OpenSession`. `is_interrupted`: what the client has sent last, and has not begun, is to end as well."""

    number: int
    user: str
    database: str
    began_us: int
    link: ClientLink
    guard: Guard
    block: BlockState
    settings: SessionSettings
    tell_client: Callable[[str], None]
    is_interrupted: bool = False

    def interrupt(self) -> None:
        # First: if the running statement ends before it sees the interrupt, the next one checks this.
        self.is_interrupted = True
        self.guard.interrupt()

    def tell(self, notice: str) -> None:
        self.tell_client(notice)

    def terminate(self, problem: errors.Error) -> None:
        """Without a client of the network, what is open is rolled back with the next statement."""
        self.is_interrupted = True
        self.guard.end(problem)
        self.link.end(problem)

    def record(self) -> SessionRecord:
        guard, transaction = self.guard, self.block.transaction
        # In autocommit a transaction is as old as its statement.
        transaction_us = guard.began_us if guard.is_running else 0
        if transaction is not None:
            transaction_us = transaction.state.statement.began_us
        return SessionRecord(
            number=self.number,
            role=self.user,
            database=self.database,
            application=self.settings.get("application_name") or "",
            address=self.link.address,
            port=self.link.port,
            began_us=self.began_us,
            transaction_us=transaction_us,
            statement_us=guard.began_us,
            changed_us=guard.changed_us,
            state=SessionActivity.ACTIVE if guard.is_running else _STATES[self.block.status],
            statement=guard.text,
            layout=self.settings.get("seachange.layout") or "",
        )
