"""A transaction: a snapshot, a buffer of writes, pending descriptor changes, and their commit.

What it knows of tables, what it reads and what it writes are layers of their own (`transaction_schema`,
`transaction_reads`, `transaction_writes`); here it ends.

**Invariant:** the commit is checked against everything since the snapshot at which each write was computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from seachange import errors
from seachange.engine.deferral import find_deferrable
from seachange.engine.job_requests import ask_job
from seachange.engine.refit import Refit
from seachange.engine.submit import commit_transaction
from seachange.engine.system_views import Row, system_rows
from seachange.engine.transaction_writes import TransactionWrites
from seachange.model.ids import Seq
from seachange.model.jobs import JobId, JobRequest
from seachange.model.locking import ShownLock
from seachange.model.relation import RelationName
from seachange.sql.system import without_private


class Transaction(TransactionWrites):
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
        return not self.buffer.is_empty or bool(self.pending) or bool(self.jobs)

    def commit(self) -> Seq | None:
        """Makes the writes durable and visible to all; gives their sequence, None if there was nothing to commit."""
        if not self._open:
            raise errors.ActiveTransaction(detail="the transaction has ended")
        try:
            with self.epoch.noticing_end():
                if self._foreign_keys.deferred:
                    self._settle_deferred()
                return self._submit() if self.has_writes else None
        finally:
            self._close()

    def _submit(self) -> Seq | None:
        return commit_transaction(self, Refit(self, self.used, self._foreign_keys).run)

    def _settle_deferred(self) -> None:
        self.start_statement()
        try:
            self._foreign_keys.settle_deferred()
        except errors.Error:
            self._abandon(self.buffer.staged_segments())
            raise

    def rollback(self) -> None:
        if self._open:
            self._close()
            self._abandon(self.buffer.staged_segments())

    def _close(self) -> None:
        self._open = False
        self.epoch.tables.leave(self._ticket)
        self.claims.release()
        self.holds.release()
        self.epoch.registry.leave(self._ticket)
