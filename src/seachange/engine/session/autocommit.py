"""Work in a transaction of its own: committed when it is done, and done again after a conflict.

**Invariant:** what a client has got rows of is not done again, nor what took or gave up an advisory lock of its
session: neither can be taken back. Of what is done again, settings are as they were before, and notices are told once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from seachange import errors
from seachange.engine.jobs.job_manager import JobManager
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.engine.transaction.transaction import Transaction
from seachange.model.jobs import JobId
from seachange.runtime.faults import reach
from seachange.sql.port.result import RowSink
from seachange.sql.settings.session_settings import SessionSettings

# How often a statement that stands for itself is run again when it meets a conflict.
RETRIES_MAX = 20

T = TypeVar("T")


class TransactionFactory(Protocol):
    def __call__(self, may_write: bool = True) -> Transaction: ...


class Autocommit:
    """`begin` and `settle` are how their session begins and commits one."""

    def __init__(
        self,
        jobs: JobManager,
        advisory: AdvisoryLocks,
        settings: SessionSettings,
        notices: list[str],
        begin: TransactionFactory,
        settle: Callable[[Transaction], None],
    ) -> None:
        self._jobs = jobs
        self._advisory = advisory
        self._settings = settings
        self._notices = notices
        self._begin = begin
        self._settle = settle

    def once(self, work: Callable[[Transaction], T], may_write: bool = True) -> T:
        return self._attempt(work, may_write)[0]

    def until_done(
        self, work: Callable[[Transaction], T], may_write: bool = True, sink: RowSink | None = None
    ) -> tuple[T, JobId | None]:
        """A statement that stands for itself never shows a conflict to its client before it was retried. Gives the
        job, too, that it has begun; it is this session's to run or let go."""
        changes, told = self._advisory.changes, len(self._notices)
        for attempt in range(RETRIES_MAX):
            try:
                return self._attempt(work, may_write, is_contended=attempt > 0)
            except (errors.SerializationFailure, errors.DeadlockDetected) as problem:
                if not self._is_repeatable(problem, changes, sink):
                    raise
                del self._notices[told:]
        return self._attempt(work, may_write, is_contended=True)

    def _is_repeatable(self, problem: errors.Error, changes: int, sink: RowSink | None) -> bool:
        if (sink is not None and sink.is_begun) or self._advisory.changes != changes:
            return False
        # Who holds an advisory lock may be the reason of a deadlock, and would be again.
        return not (self._advisory.any_held and isinstance(problem, errors.DeadlockDetected))

    def _attempt(
        self, work: Callable[[Transaction], T], may_write: bool, is_contended: bool = False
    ) -> tuple[T, JobId | None]:
        before = self._settings.mark()
        committed = False
        try:
            done = self._commit(work, may_write, is_contended)
            committed = True
        finally:
            self._settings.end_own(before, committed)
        return done

    def _commit(self, work: Callable[[Transaction], T], may_write: bool, is_contended: bool) -> tuple[T, JobId | None]:
        transaction = self._begin(may_write)
        # After a conflict other nodes wait for what is written, so that it does not lose for ever.
        transaction.write_locks.is_shared = is_contended
        try:
            result = work(transaction)
        except BaseException:
            transaction.rollback()
            raise
        if not transaction.jobs:
            self._settle(transaction)
            return result, None
        job_id = transaction.jobs[0].id
        self._settle_job(transaction, job_id)
        return result, job_id

    def _settle_job(self, transaction: Transaction, job_id: JobId) -> None:
        # Held before anybody can see it, so that the node's worker leaves it to this session.
        self._jobs.hold(job_id)
        try:
            self._settle(transaction)
        except BaseException:
            self._jobs.let_go(job_id)
            raise
        reach("job.created")
