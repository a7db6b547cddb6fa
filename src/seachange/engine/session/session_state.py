"""The parts of a session that the statements about the session itself need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from seachange.engine.context.statement_calls import NamedStatements
from seachange.engine.session.cursors import OpenCursors
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.model.relation import RelationName
from seachange.model.statements import ExportTable, FeedStatement, ImportTable, LockTables, NeedlessStatement, Vacuum
from seachange.sql.port.result import Result
from seachange.sql.run.execute import Prepared
from seachange.sql.settings.session_settings import SessionSettings


class TransactionStatus(Enum):
    IDLE = auto()
    OPEN = auto()
    FAILED = auto()


@dataclass(slots=True)
class BlockState:
    """The transaction block of a session; `TransactionBlock` alone changes it. The transaction is begun by the first
    statement that needs it, so that modes can be set after BEGIN."""

    status: TransactionStatus = TransactionStatus.IDLE
    read_only: bool = False
    transaction: Transaction | None = None


class SessionState(Protocol):
    settings: SessionSettings
    notices: list[str]
    prepared: NamedStatements
    cursors: OpenCursors

    @property
    def status(self) -> TransactionStatus: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def has_begun(self) -> bool:
        """Whether a statement of the open transaction has read the database."""

    def set_read_only(self, read_only: bool) -> None:
        """The mode of the open block."""

    def execute_prepared(self, prepared: Prepared, values: Sequence[Any]) -> Result:
        """Runs a query or DML statement in the open transaction, or in one of its own."""

    def execute_kept(self, prepared: Prepared, values: Sequence[Any]) -> Result:
        """The same for a query whose rows are fetched later."""

    def begin(self, isolation: Isolation | None = None, read_only: bool | None = None) -> None: ...

    def commit(self) -> bool: ...

    def rollback(self) -> None: ...

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None: ...

    def unlock_advisory(self) -> None: ...

    def drop_temporary(self) -> None: ...

    def check_setting(self, name: str, value: str | None) -> None:
        """Whether the client may set it so."""

    def check_needs(self, statement: NeedlessStatement) -> None:
        """42501 unless the role has what the statement requires."""

    def vacuum(self, statement: Vacuum) -> None: ...

    def import_table(self, statement: ImportTable) -> None: ...

    def export_table(self, statement: ExportTable) -> None: ...

    def change_feed(self, statement: FeedStatement) -> Result: ...

    def lock_tables(self, statement: LockTables) -> None: ...

    def savepoint(self, name: str) -> None: ...

    def release(self, name: str) -> None: ...

    def rollback_to(self, name: str) -> None: ...
