"""How the transactions of a session begin and commit, and on behalf of which role and with which limits they run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from seachange.engine.context.child_transactions import ChildTransactions
from seachange.engine.context.statement_context import BLOCK, SessionFacts, StatementContext, TransactionMode
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.session.admission import Admission
from seachange.engine.session.session_state import BlockState, TransactionStatus
from seachange.engine.session.statement_guard import Guard
from seachange.engine.transaction.enum_labels import labelled
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.search_path import parse_path
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.mentions import Mentions
from seachange.sql.run.execute import prepare, run_statement
from seachange.sql.settings.session_settings import TypedSettings
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
        children: ChildTransactions,
    ) -> None:
        self._children = children
        self._node = node
        self._facts = facts
        self._settings = facts.values
        self._client = client
        self._admission = admission
        self._block = block
        self._guard = guard
        self._duck = duck
        self._notices = notices
        # As of the typed settings and the temporary schema that it was made of.
        self._context: tuple[TypedSettings, str | None, StatementContext] | None = None

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
        settings = self._settings
        is_idle = self._block.status is TransactionStatus.IDLE
        return settings.typed.default_isolation if is_idle else settings.isolation

    @property
    def context(self) -> StatementContext:
        """As the settings are now."""
        typed, own = self._settings.typed, self._client.temporary.schema
        known = self._context
        if known is None or known[0] is not typed or known[1] != own:
            known = self._context = (typed, own, self._make_context(typed, own))
        return known[2]

    def _make_context(self, typed: TypedSettings, own: str | None) -> StatementContext:
        path = parse_path(typed.search_path, self._facts.user)
        if own is not None:
            # Searched first, whether the path names it or not.
            path = (own, *(name for name in path if name != OWN_SCHEMA))
        return StatementContext(
            self._facts, self._admission.identity, path, typed.lock_timeout_ms, waits=True, children=self._children
        )

    def begin(self, mode: TransactionMode = BLOCK, may_write: bool = True) -> Transaction:
        as_of = parse_as_of(self._settings.typed.as_of)
        if isinstance(as_of, dt.datetime):
            as_of = self._node.sequence_at((as_of - _EPOCH) // _MICROSECOND)
        seq = None if as_of is None else Seq(as_of)
        # Nothing has been done yet: if the epoch ends now, the transaction begins in the next one.
        return self._node.in_epoch(lambda epoch: self._begin_at(seq, mode, may_write and not self.is_read_only))

    def _begin_at(self, seq: Seq | None, mode: TransactionMode, may_write: bool) -> Transaction:
        transaction = self._node.begin(self._isolation, seq, self._client, may_write, mode, self.context)
        try:
            self._client.advisory.check_epoch(transaction.state.epoch)
            self._admission.begin(transaction.state.write_locks)
        except BaseException:
            # Also if the loop leaves the statement to a thread.
            transaction.rollback()
            raise
        return transaction

    def enter(self, transaction: Transaction, mentions: Mentions | None = None) -> None:
        """Before a statement: it runs in the context that the settings describe now."""
        transaction.state.statement.enter(self.context, mentions)
        self._duck.ask(transaction.known)

    def commit(self, transaction: Transaction, resume: Callable[[], bool] | None = None) -> None:
        with self._guard.statement():
            try:
                self._end_temporary(transaction)
            except BaseException:
                transaction.rollback()
                raise
            if transaction.commit(resume) is not None:
                self._guard.note_committed()

    def _end_temporary(self, transaction: Transaction) -> None:
        if self._client.temporary.on_commit:
            written = {*transaction.state.used, *transaction.state.pending.versions()}
            for statement in self._client.temporary.statements(transaction.schema, written):
                (prepared,) = prepare(statement)
                run_statement(prepared, labelled(transaction), self._duck, (), self._notices)
