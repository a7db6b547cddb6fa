"""A transaction: a snapshot, a buffer of writes, pending descriptor changes, and their commit.

What it knows of tables, what it reads and what it writes are layers of their own (`transaction_schema`,
`transaction_reads`, `transaction_writes`); here it ends.

**Invariant:** the commit is checked against everything since the snapshot at which each write was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seachange import errors
from seachange.engine.context.deferral import find_deferrable
from seachange.engine.transaction.advance import advance, is_current
from seachange.engine.transaction.job_requests import ask_job
from seachange.engine.transaction.rebase import Rebase
from seachange.engine.transaction.submit import commit_transaction
from seachange.engine.transaction.system_views import Row, system_rows
from seachange.engine.transaction.transaction_writes import SavepointMark, TransactionWrites
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId, JobRequest
from seachange.model.locking import ShownLock
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.system_relations import without_private


class Transaction(TransactionWrites):
    # Statements.

    def start_statement(self) -> None:
        """READ COMMITTED: the next statement sees what is committed now. At every level, it may do what roles and
        access lists say now."""
        self.shapes.begin_statement()
        self._start()

    def _start(self) -> None:
        self.tape.rewind()
        self._statement_us = self.parts.clock.wall_us()
        head = self.epoch.catch_up()
        self.rights.renew()
        if self.read_only or self.isolation is not Isolation.READ_COMMITTED:
            return
        if not is_current(self, head):
            advance(self, head)
        self.snapshot, self.is_held = head, False
        if self.buffer.is_empty and not self.pending and not self.declared.locked:
            limits = [limit.seq for limit in self.shapes.limits.values()]
            self.epoch.registry.move(self._ticket, min([head, *limits]))

    def renew_snapshot(self, seq: int) -> bool:
        """Whether a statement that met a row of commit `seq` can be run again on it: READ COMMITTED only, and only if
        it can be shown what is committed now."""
        if self.isolation is not Isolation.READ_COMMITTED or self.is_held:
            return False
        self._forget_attempt()
        self._start()
        return self.snapshot >= seq

    def _forget_attempt(self) -> None:
        """Tables that the statement has used first, and has not written to yet, may have another shape when it is run
        again: that is the first which its client sees."""
        locked = {row.table.id for row in self.declared.locked}
        for id_ in self.shapes.forget_attempt():
            if id_ not in locked:
                self.used.pop(id_, None)

    def see_locked(self) -> None:
        """After LOCK TABLE: at READ COMMITTED, and in a transaction that has read nothing yet, what was committed
        before the lock was granted is there."""
        if self.isolation is Isolation.READ_COMMITTED:
            self._forget_attempt()
            self._start()
        elif not self.read_only and not self.used and self.buffer.is_empty and not self.pending:
            self.snapshot = self._look()

    def go_back(self, seq: int) -> None:
        """The statement under way is run again as of a limit."""
        if seq >= self.snapshot:
            raise errors.Bug(detail=f"a statement as of {self.snapshot} was sent back to {seq}")
        self._forget_attempt()
        self.tape.rewind()
        self.snapshot, self.is_held = Seq(seq), True

    def rebase(self, tables: Sequence[Table], at: Seq) -> None:
        mark = self.mark()
        try:
            Rebase(self, self.used, self._foreign_keys).move(tables, at)
        except BaseException:
            self.reset(mark)
            raise

    def back_to(self, mark: SavepointMark) -> None:
        super().back_to(mark)
        # What stood against the head may have gone with what was done since.
        self.shapes.limits.clear()
        # So has what was declared of rows that were locked before, if their table has moved since.
        for row in self.declared.locked:
            self.used[row.table.id] = min(row.table.version, self.used.get(row.table.id, row.table.version))

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None:
        """Constraints that become immediate are checked at once; if that fails, they stay as they were."""
        tables = self.tables()
        found = None if names is None else [key for name in names for key in find_deferrable(tables, name)]
        self._foreign_keys.set_deferral(found, deferred)

    def system_rows(self, view: str) -> list[Row]:
        rows = system_rows(view, self.parts, self.epoch, self.session.database, self.actor)
        return rows if self.actor.superuser else without_private(view, rows)

    def shown_locks(self) -> list[ShownLock]:
        return self.epoch.tables.shown(table.id for table in self.tables())

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        if not self.actor.superuser:
            raise errors.InsufficientPrivilege(detail="permission denied: only superusers change jobs")
        ask_job(self.parts.catalog, job_id, request)

    @property
    def has_writes(self) -> bool:
        return not self.buffer.is_empty or bool(self.pending) or bool(self.declared.jobs)

    def commit(self, resume: Callable[[], bool] | None = None) -> Seq | None:
        """Makes the writes durable and visible to all; gives their sequence, None if there was nothing to commit.
        `resume` is asked after a conflict to bring the writes up to date; it says whether they are."""
        if not self._open:
            raise errors.ActiveTransaction(detail="the transaction has ended")
        try:
            self.write_locks.resumes = resume is not None
            with self.epoch.noticing_end():
                return self._commit(resume)
        except (errors.UnknownCommitOutcome, errors.CatalogUnavailable):
            # It is unknown whether the files are referred to: they stay intents of this epoch.
            raise
        except errors.Error:
            self._abandon(self.buffer.staged_segments())
            raise
        finally:
            self._close()

    def _commit(self, resume: Callable[[], bool] | None) -> Seq | None:
        if self._foreign_keys.deferred:
            # What is checked now is no longer known when the statements are run again.
            resume = None
            self._settle_deferred()
        while self.has_writes:
            try:
                return self._submit()
            except errors.SerializationFailure as problem:
                if resume is None or isinstance(problem, errors.StaleNode) or not resume():
                    raise
        return None

    def _submit(self) -> Seq | None:
        # What is left to do is about the newest versions.
        self.shapes.limits.clear()
        return commit_transaction(self, Rebase(self, self.used, self._foreign_keys).run)

    def _settle_deferred(self) -> None:
        self.start_statement()
        deferred = self._foreign_keys.deferred
        while True:
            try:
                self._foreign_keys.check_deferred()
                return
            except errors.StatementHeld as held:
                self._foreign_keys.deferred = deferred
                self.go_back(held.seq)

    def rollback(self) -> None:
        if self._open:
            self._close()
            self._abandon(self.buffer.staged_segments())

    def _close(self) -> None:
        self._open = False
        self.epoch.tables.leave(self._ticket)
        self.write_locks.release()
        self.holds.release()
        self.epoch.registry.leave(self._ticket)
