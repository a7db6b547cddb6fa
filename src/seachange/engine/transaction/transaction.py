"""A transaction, composed of parts: its state (snapshot, buffer, locks, declarations), what it reads, writes and
defines, and how it goes back. Here it goes from statement to statement, and ends.

**Invariant:** the commit is checked against everything since the snapshot at which each write was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from seachange import errors
from seachange.engine.buffer.block_changes import NO_CHANGES
from seachange.engine.buffer.segment_staging import abandon
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.constraints.row_changes import RowChanges
from seachange.engine.context.deferral import find_deferrable
from seachange.engine.context.statement_context import BLOCK, StatementContext, TransactionMode
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.reads.table_uses import TableUses
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.registry import SnapshotPins
from seachange.engine.transaction.advance import advance, is_current, retreat
from seachange.engine.transaction.block_stages import check_stages, leave_stages, revert_stages
from seachange.engine.transaction.definitions import Definitions
from seachange.engine.transaction.row_writes import RowWrites
from seachange.engine.transaction.staged_change import adopt_newest
from seachange.engine.transaction.submit import commit_transaction
from seachange.engine.transaction.transaction_locks import TransactionLocks
from seachange.engine.transaction.transaction_parts import TransactionParts
from seachange.engine.transaction.undo import SavepointMark, Undo
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.relation import RelationName
from seachange.sql.compile.template import SESSION_ROLE, SESSION_SCHEMA, SESSION_USER
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result


class Transaction:
    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        isolation: Isolation,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
        mode: TransactionMode = BLOCK,
        context: StatementContext | None = None,
    ) -> None:
        state = self.state = TransactionState(parts, epoch, isolation, as_of, client, may_write, mode, context)
        self.schema = state.schema
        uses = TableUses(state)
        self.reads = RowReads(state, uses)
        changes = RowChanges(state, uses)
        self._foreign_keys = ForeignKeys(state, self.reads, changes)
        self.undo = Undo(state, self._foreign_keys)
        self.writes = RowWrites(state, self.reads, changes, self._foreign_keys, self.undo)
        self.parts = TransactionParts(state, uses, self.reads, self._foreign_keys, self.undo)
        self.port = TransactionPort(
            state.statement, state.schema, state.schema, state.rights, self.reads, self.writes, self.undo, self.parts
        )
        # What is read lazily, later in the transaction, stays as it was.
        self.pins = SnapshotPins()
        # The answers to statements that were run together with one before them.
        self.answered: dict[object, Result] = {}
        self._is_open = True
        epoch.tables.enter(state.snapshot.ticket, state.write_locks.held)

    def roll_back_to(self, mark: SavepointMark) -> None:
        self.undo.back_to(mark)
        self.parts.rebase.follow_rewritten()

    @property
    def locks(self) -> TransactionLocks:
        return self.parts.locks

    @property
    def definitions(self) -> Definitions:
        return self.parts.definitions

    # Statements.

    def known(self) -> dict[str, Any]:
        """The values that functions return about the transaction in this statement."""
        statement, rights = self.state.statement, self.state.rights
        who = {SESSION_ROLE: rights.actor.user, SESSION_USER: statement.session.session_user}
        return {**statement.moments, SESSION_SCHEMA: self.state.schema.current_schema, **who}

    def start_statement(self) -> None:
        """READ COMMITTED: the next statement sees what is committed now. At every level, it may do what roles and
        access lists say now."""
        self.state.shapes.begin_statement()
        self._start()

    def _start(self) -> None:
        state, snapshot = self.state, self.state.snapshot
        state.statement.start()
        head = state.epoch.catch_up()
        state.rights.renew()
        check_stages(state)
        if snapshot.is_past or state.isolation is not Isolation.READ_COMMITTED:
            return
        if not is_current(state, head):
            advance(state, self.parts.rebase, head)
        snapshot.advance(head)
        if state.buffer.is_empty and not state.pending and not state.declared.locked:
            snapshot.pin(min([head, *(limit.seq for limit in state.shapes.limits.values())]))

    def renew_snapshot(self, seq: int) -> bool:
        """Whether a statement that met a row of commit `seq` can be run again on it: READ COMMITTED only, and only if
        it can be shown what is committed now. A change of a table is planned again at every level."""
        if self.state.isolation is not Isolation.READ_COMMITTED:
            return self._take_over()
        if self.state.snapshot.is_held:
            return False
        self._forget_attempt()
        self._start()
        if self.state.block.outdated and not adopt_newest(self.state, self.parts.rebase):
            return False
        return self.state.snapshot.seq >= seq

    def _take_over(self) -> bool:
        """Above READ COMMITTED: the newest definition of the tables that the statement is about to change, or, if the
        transaction begins with it, another snapshot."""
        state = self.state
        if state.block.outdated:
            self._forget_attempt()
        if not state.block.outdated or state.has_begun:
            return adopt_newest(state, self.parts.rebase)
        state.block.outdated.clear()
        state.snapshot.look_again()
        return True

    def _forget_attempt(self) -> None:
        """Tables that the statement has used first, and has not written to yet, may have another shape when it is run
        again: that is the first which its client sees."""
        locked = {row.table.id for row in self.state.declared.locked}
        for id_ in self.state.shapes.forget_attempt():
            if id_ not in locked:
                self.state.used.pop(id_, None)

    def see_locked(self) -> None:
        """After LOCK TABLE: at READ COMMITTED, and in a transaction that has read nothing yet, what was committed
        before the lock was granted is there."""
        state = self.state
        if state.isolation is Isolation.READ_COMMITTED:
            self._forget_attempt()
            self._start()
        elif not state.snapshot.is_past and not state.has_begun:
            state.snapshot.look_again()

    def go_back(self, seq: int) -> None:
        """The statement under way is run again as of a limit."""
        self.state.snapshot.go_back(Seq(seq))
        self._forget_attempt()
        retreat(self.state, self.parts.rebase, self.state.snapshot.seq)
        self.state.statement.tape.rewind()

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None:
        """Constraints that become immediate are checked at once; if that fails, they stay as they were."""
        tables = self.state.schema.tables()
        found = None if names is None else [key for name in names for key in find_deferrable(tables, name)]
        self._foreign_keys.set_deferral(found, deferred)

    # The end.

    @property
    def has_writes(self) -> bool:
        return not self.state.buffer.is_empty or bool(self.state.pending) or bool(self.state.declared.jobs)

    def commit(self, resume: Callable[[], bool] | None = None) -> Seq | None:
        """Makes the writes durable and visible to all; gives their sequence, None if there was nothing to commit.
        `resume` is asked after a conflict to bring the writes up to date; it says whether they are."""
        if not self._is_open:
            raise errors.ActiveTransaction(detail="the transaction has ended")
        try:
            with self.state.epoch.noticing_end():
                return self._commit(resume)
        except (errors.UnknownCommitOutcome, errors.CatalogUnavailable):
            # It is unknown whether the files are referred to: they stay intents of this epoch.
            raise
        except errors.Error:
            revert_stages(self.state, NO_CHANGES)
            self._abandon_staged()
            raise
        finally:
            leave_stages(self.state)
            self._abandon_copies()
            self._close()

    def _commit(self, resume: Callable[[], bool] | None) -> Seq | None:
        if self._foreign_keys.deferred:
            # What is checked now is no longer known when the statements are run again.
            resume = None
            self._check_deferred()
        while self.has_writes:
            try:
                # What is left to do is about the newest versions.
                self.state.shapes.limits.clear()
                return commit_transaction(self.state, self.parts.rebase, self._foreign_keys, resumes=resume is not None)
            except errors.SerializationFailure as problem:
                if resume is None or isinstance(problem, errors.StaleNode) or not resume():
                    raise
        return None

    def _check_deferred(self) -> None:
        self.start_statement()
        while True:
            try:
                self._foreign_keys.check_deferred()
                return
            except errors.StatementHeld as held:
                self.go_back(held.seq)

    def rollback(self) -> None:
        if self._is_open:
            revert_stages(self.state, NO_CHANGES)
            self._abandon_copies()
            self._close()
            self._abandon_staged()

    def _abandon_staged(self) -> None:
        abandon(self.state, [segment.id for segment in self.state.buffer.staged_segments()])

    def _abandon_copies(self) -> None:
        """No commit refers to them. Where the catalog cannot be asked, they are garbage when the epoch ends."""
        copied = self.state.block.copied
        if not copied:
            return
        self.state.parts.warehouse.release(set(copied))
        with suppress(errors.Error):
            abandon(self.state, copied)

    def _close(self) -> None:
        state = self.state
        self._is_open = False
        state.epoch.tables.leave(state.snapshot.ticket)
        state.write_locks.release()
        self.pins.release()
        state.epoch.registry.leave(state.snapshot.ticket)
