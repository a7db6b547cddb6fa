"""The transaction block of a session: BEGIN, COMMIT, ROLLBACK and savepoints.

**Invariant:** there is no block, an open one, or a failed one that only COMMIT, ROLLBACK and ROLLBACK TO leave; no
transaction outlives its block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from seachange import errors
from seachange.engine.context.statement_calls import StatementCall
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.session.block_resume import BlockStatements
from seachange.engine.session.cursors import OpenCursor, OpenCursors
from seachange.engine.session.session_state import BlockState, TransactionStatus
from seachange.engine.session.session_transactions import SessionTransactions
from seachange.engine.session.statement_loop import StatementRunner
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.sql.parsing.mentions import EVERYTHING
from seachange.sql.port.result import Result
from seachange.sql.settings.session_settings import SessionSettings, SettingsMark

T = TypeVar("T")


class TransactionBlock:
    def __init__(
        self,
        state: BlockState,
        transactions: SessionTransactions,
        runner: StatementRunner,
        settings: SessionSettings,
        client: SessionContext,
        cursors: OpenCursors,
        notices: list[str],
    ) -> None:
        self._state = state
        self._transactions = transactions
        self._settings = settings
        self._client = client
        self._cursors = cursors
        self._notices = notices
        self._savepoints = Savepoints()
        self._statements = BlockStatements(runner, settings)

    # Statements.

    def run(self, call: StatementCall) -> Result:
        return self.work(partial(self._statements.run, call, self._savepoints.statements))

    def work(self, work: Callable[[Transaction], T]) -> T:
        """Work in the transaction of the block; an error makes it a failed one."""
        try:
            transaction = self._state.transaction
            if transaction is None:
                transaction = self._state.transaction = self._transactions.begin()
            else:
                transaction.start_statement()
                transaction.state.statement.enter(self._transactions.context, EVERYTHING)
            while True:
                try:
                    return work(transaction)
                except errors.StatementHeld as held:
                    transaction.go_back(held.seq)
        except BaseException as problem:
            if isinstance(problem, (MemoryError, KeyboardInterrupt)):
                # It came between any two steps: what a savepoint needs may not be on record.
                self._savepoints.clear()
            self._fail()
            raise

    def forget(self) -> None:
        """The statements so far are not run again: the session has done something else since."""
        self._statements.forget()

    # The block.

    def begin(self, isolation: Isolation | None = None, read_only: bool | None = None) -> None:
        if self._state.status is not TransactionStatus.IDLE:
            self._notices.append("there is already a transaction in progress")
            return
        level = isolation or self._settings.typed.default_isolation
        is_read_only = self._transactions.is_read_only if read_only is None else read_only
        self._settings.begin()
        self._settings.set("transaction_isolation", level.value, local=True)
        self._state.read_only = is_read_only
        self._state.status = TransactionStatus.OPEN

    def set_read_only(self, read_only: bool) -> None:
        self._state.read_only = read_only

    def commit(self) -> bool:
        """False if there was a failed transaction, which has been rolled back."""
        state = self._state
        if state.status is TransactionStatus.IDLE:
            return True
        committed = False
        try:
            if state.status is TransactionStatus.OPEN and state.transaction is not None:
                self._commit(state.transaction)
            elif state.transaction is not None:
                state.transaction.rollback()
            committed = state.status is TransactionStatus.OPEN
        finally:
            self._end(committed)
        return committed

    def _commit(self, transaction: Transaction) -> None:
        # The role is that of the last statement, whatever SET ROLE said since.
        statement, timeout_ms = transaction.state.statement, self._settings.typed.lock_timeout_ms
        if statement.context.lock_timeout_ms != timeout_ms:
            statement.enter(replace(statement.context, lock_timeout_ms=timeout_ms))
        can_resume = self._statements.can_resume(transaction) and not self._client.temporary.on_commit
        self._transactions.commit(transaction, partial(self._resume, transaction) if can_resume else None)

    def _resume(self, transaction: Transaction) -> bool:
        notices = len(self._notices)
        try:
            return self._statements.resume(transaction)
        finally:
            del self._notices[notices:]

    def rollback(self) -> None:
        if self._state.transaction is not None:
            self._state.transaction.rollback()
        if self._state.status is not TransactionStatus.IDLE:
            self._end(committed=False)

    def _end(self, committed: bool) -> None:
        self._state.transaction = None
        self._statements.clear()
        self._savepoints.clear()
        self._cursors.end(committed)
        self._state.read_only = False
        self._state.status = TransactionStatus.IDLE
        self._settings.end(committed)

    def mark_failed(self) -> None:
        """A statement has failed before it was run, by its text or its parameters: the transaction fails with it."""
        if self._state.status is TransactionStatus.OPEN:
            self._fail()

    def _fail(self) -> None:
        # A savepoint keeps the transaction: ROLLBACK TO needs what was done before it.
        if self._state.transaction is not None and not self._savepoints:
            self._state.transaction.rollback()
            self._state.transaction = None
        self._state.status = TransactionStatus.FAILED

    # Savepoints.

    def savepoint(self, name: str) -> None:
        state = self._state
        if state.transaction is None:
            state.transaction = self._transactions.begin()
        mark, settings, cursors = state.transaction.undo.savepoint(), self._settings.mark(), self._cursors.mark()
        self._savepoints.push(Point(name, mark, settings, state.read_only, cursors, self._statements.count))

    def release(self, name: str) -> None:
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        point = self._savepoints.back_to(name)
        if self._state.transaction is None:
            raise errors.Bug(detail="a savepoint without a transaction")
        self._state.transaction.roll_back_to(point.mark)
        self._settings.restore(point.settings)
        self._cursors.restore(point.cursors)
        self._state.read_only = point.read_only
        self._state.status = TransactionStatus.OPEN


@dataclass(frozen=True, slots=True)
class Point:
    """`mark` is the transaction's own; the settings and the mode are the session's. `statements` of the block came
    before it."""

    name: str
    mark: Any
    settings: SettingsMark
    read_only: bool
    cursors: dict[str, OpenCursor]
    statements: int


class Savepoints:
    """The savepoints of an open transaction, the newest last.

    **Invariant:** each remembers what was there when it was set; going back to one forgets those after it. A name may
    be given again: it then means the newest, and the older one once that is released.
    """

    def __init__(self) -> None:
        self._points: list[Point] = []

    def __bool__(self) -> bool:
        return bool(self._points)

    @property
    def statements(self) -> int:
        """The statements before the newest."""
        return self._points[-1].statements if self._points else 0

    def push(self, point: Point) -> None:
        self._points.append(point)

    def release(self, name: str) -> None:
        """Forgets the savepoint and all after it; what was done since stays."""
        del self._points[self._find(name) :]

    def back_to(self, name: str) -> Point:
        """Forgets all after the savepoint."""
        position = self._find(name)
        del self._points[position + 1 :]
        return self._points[position]

    def clear(self) -> None:
        self._points.clear()

    def _find(self, name: str) -> int:
        for position in reversed(range(len(self._points))):
            if self._points[position].name == name:
                return position
        raise errors.InvalidSavepoint(name=name)
