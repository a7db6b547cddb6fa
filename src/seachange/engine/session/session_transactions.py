"""How the transactions of a session begin and commit, and on behalf of which role and with which limits they run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from seachange import errors
from seachange.engine.context.session_facts import SessionFacts
from seachange.engine.context.transaction_mode import BLOCK, TransactionMode
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.session.admission import Admission
from seachange.engine.session.enum_labels import labelled
from seachange.engine.session.session_state import BlockState, TransactionStatus
from seachange.engine.session.statement_guard import Guard
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.search_path import parse_path
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.run.execute import prepare, run_statement
from seachange.sql.settings.setting_checks import parse_as_of

_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class SessionTransactions:
    def __init__(
        self,
        node: Node,
        facts: SessionFacts,
        client: SessionContext,
        admission: Admission,
        block: BlockState,
        guard: Guard,
        duck: DuckSession,
        notices: list[str],
    ) -> None:
        self._node = node
        self._facts = facts
        self._settings = facts.values
        self._client = client
        self._admission = admission
        self._block = block
        self._guard = guard
        self._duck = duck
        self._notices = notices

    @property
    def advisory(self) -> AdvisoryLocks:
        return self._client.advisory

    @property
    def is_read_only(self) -> bool:
        """Outside of a block, as the next one would be."""
        if self._block.status is TransactionStatus.IDLE:
            return self._settings.typed.is_read_only
        return self._block.read_only

    @property
    def _isolation(self) -> Isolation:
        typed = self._settings.typed
        return typed.default_isolation if self._block.status is TransactionStatus.IDLE else typed.isolation

    def begin(self, mode: TransactionMode = BLOCK, may_write: bool = True, is_contended: bool = False) -> Transaction:
        """`is_contended`: after a conflict other nodes wait for its writes, so that it does not lose for ever."""
        as_of = parse_as_of(self._settings.typed.as_of)
        if isinstance(as_of, dt.datetime):
            as_of = self._node.sequence_at((as_of - _EPOCH) // _MICROSECOND)
        seq = None if as_of is None else Seq(as_of)
        # Nothing has been done yet: if the epoch ends now, the transaction begins in the next one.
        transaction = self._node.in_epoch(lambda epoch: self._begin_at(seq, may_write))
        transaction.standing = mode
        transaction.write_locks.is_shared = is_contended
        return transaction

    def _begin_at(self, seq: Seq | None, may_write: bool) -> Transaction:
        transaction = self._node.begin(self._isolation, seq, self._client, may_write and not self.is_read_only)
        transaction.search_path = self._path()
        transaction.rights.identity = self._admission.identity
        transaction.session = self._facts
        # A session waits, and runs a statement again.
        transaction.write_locks.waits = True
        try:
            self._client.advisory.check_epoch(transaction.epoch)
            self._admission.begin(transaction.write_locks)
        except errors.Error:
            transaction.rollback()
            raise
        return transaction

    def enter(self, transaction: Transaction) -> None:
        """Before a statement: it runs with the role, the path and the limits that the session has now."""
        transaction.search_path = self._path()
        transaction.rights.identity = self._admission.identity
        transaction.session = self._facts
        transaction.write_locks.timeout_ms = self._settings.typed.lock_timeout_ms
        self._duck.ask(transaction.known)

    def restart(self, transaction: Transaction) -> None:
        """Before another statement of a block."""
        transaction.start_statement()
        transaction.rights.identity = self._admission.identity

    def _path(self) -> tuple[str, ...]:
        path = parse_path(self._settings.typed.search_path, self._facts.user)
        own = self._client.temporary.schema
        # Looked into first, whether the path names it or not.
        return path if own is None else (own, *(name for name in path if name != OWN_SCHEMA))

    def commit(self, transaction: Transaction, resume: Callable[[], bool] | None = None) -> None:
        with self._guard.statement():
            try:
                self._end_temporary(transaction)
            except BaseException:
                transaction.rollback()
                raise
            transaction.write_locks.resumes = resume is not None
            if transaction.commit(resume) is not None:
                self._guard.note_committed()

    def _end_temporary(self, transaction: Transaction) -> None:
        if self._client.temporary.on_commit:
            for statement in self._client.temporary.statements(transaction):
                (prepared,) = prepare(statement)
                run_statement(prepared, labelled(transaction), self._duck, (), self._notices)
