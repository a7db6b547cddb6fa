"""The path of a statement from its call to its commit, and the four reasons for which it is run again.

1. `StatementRunner.run`: it met a row or table that is newer than its snapshot. It is run again in its transaction.
2. `StatementLoop.commit`: an autocommit statement met a conflict. It is run again in a new transaction.
3. `StatementLoop.commit`: an autocommit statement found no memory because another one used too much. It is run again
   when that has ended, unless its commit had been sent.
4. `StatementLoop.run`: other schema changes are at work on the same object. It is run again, or queued, behind them.

**Invariant:** a statement is run again only while none of its writes is in the buffer, and at READ COMMITTED; a
statement that fails leaves none of its writes.
**Invariant:** a statement is not run again once its client has got rows of it, or once it took or released an advisory
lock of its session: neither can be undone. When a statement is run again, settings are as before it, and its notices
are sent once.
**Invariant:** a change of an object begins when the changes sent before it have ended. A statement that returns the id
of its job at once is queued behind them; any other statement waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.statement_calls import StatementCall
from seachange.engine.context.statement_context import AUTOCOMMIT, BLOCK, TransactionMode
from seachange.engine.session.job_session import SessionJobs, is_asynchronous, job_result
from seachange.engine.session.look_ups import LookUps
from seachange.engine.session.session_transactions import SessionTransactions
from seachange.engine.session.statement_guard import Guard
from seachange.engine.shapes.pins import Pins
from seachange.engine.shapes.shaped_port import shaped
from seachange.engine.transaction.enum_labels import labelled
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId
from seachange.runtime.faults import reach
from seachange.sql.change.running_changes import Busy
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, RowSink, show_in_zone
from seachange.sql.run.execute import Prepared, prepare, run_statement
from seachange.sql.run.joint_statements import find_joint, run_joint
from seachange.sql.settings.session_settings import SessionSettings
from seachange.values.timezone import session_zone

# Rows that were met are locked, so that a statement gets further each time, unless other nodes change them.
RERUNS_MAX = 100
# How often a statement in autocommit is run again after a conflict.
RETRIES_MAX = 20
_OUT_OF_RANGE = "22003"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StatementRunner:
    """Runs statements in a transaction that is open."""

    transactions: SessionTransactions
    pins: Pins
    duck: DuckSession
    jobs: SessionJobs
    notices: list[str]

    def run(self, call: StatementCall, transaction: Transaction) -> Result:
        """The statement sees the newest version of the rows that it writes or locks."""
        prepared, reruns = call.prepared, 0
        if prepared.writes and (self.transactions.is_read_only or transaction.state.snapshot.is_past):
            raise errors.ReadOnlyTransaction(command=prepared.command)
        if prepared in transaction.answered:
            return transaction.answered.pop(prepared)
        # Left by a message that has ended early.
        transaction.answered.clear()
        self.transactions.enter(transaction, prepared.mentions)
        joint = () if transaction.state.mode.autocommit else find_joint(prepared, call.following)
        while True:
            try:
                port = self.port_for(prepared, transaction)
                if joint and (results := run_joint([prepared, *joint], port, self.duck)) is not None:
                    transaction.answered |= zip(joint, results[1:], strict=True)
                    return results[0]
                joint = ()
                result = run_statement(prepared, port, self.duck, call.values, self.notices, call.sink)
                return show_in_zone(result, session_zone())
            except Busy as busy:
                if transaction.state.mode.autocommit:
                    raise
                self._wait_in_block(transaction, busy)
                reruns = 0
            except errors.Error as problem:
                if reruns == RERUNS_MAX or not can_rerun(transaction, problem, call.sink):
                    raise
                reruns += 1

    def port(self, transaction: Transaction) -> TransactionPort:
        """The transaction as queries, and changes of rows, see it."""
        return self.pins.over(transaction, shaped(transaction))

    def port_for(self, prepared: Prepared, transaction: Transaction) -> TransactionPort:
        # A definition is about tables as they are.
        return labelled(transaction) if prepared.is_definition else self.port(transaction)

    def _wait_in_block(self, transaction: Transaction, busy: Busy) -> None:
        """Until other changes of the object are over. At READ COMMITTED their result must be in the snapshot then; at
        other levels the newest definition is taken over."""
        self.jobs.statement().stand_behind(busy.jobs, in_block=True)
        head = transaction.state.epoch.catch_up()
        transaction.start_statement()
        is_newest = transaction.state.isolation is Isolation.READ_COMMITTED
        if is_newest and transaction.state.snapshot.seq < head:
            jobs = ", ".join(map(str, busy.jobs))
            raise errors.SerializationFailure(detail=f"job {jobs} has changed the object since the snapshot was taken")


def can_rerun(transaction: Transaction, problem: errors.Error, sink: RowSink | None = None) -> bool:
    """Whether the statement can be run again on what it met; the transaction then is at a snapshot that shows it. A
    client that has got rows through `sink` gets none again."""
    if isinstance(problem, errors.StatementHeld):
        transaction.go_back(problem.seq)
        return True
    if isinstance(problem, errors.RowChanged):
        return transaction.renew_snapshot(problem.seq)
    if not isinstance(problem, errors.DataError) or problem.sqlstate != _OUT_OF_RANGE:
        return False
    return not (sink is not None and sink.is_begun) and transaction.state.shapes.widen()


def run_current(transaction: Transaction, work: Callable[[], T]) -> T:
    """The same for work that is no statement of SQL."""
    for _ in range(RERUNS_MAX):
        try:
            return work()
        except errors.Error as problem:
            if not can_rerun(transaction, problem):
                raise
    return work()


class _MemoryShortage(Exception):
    def __init__(self, failure: BaseException) -> None:
        super().__init__(failure)
        self.failure = failure


class StatementLoop:
    """Runs statements of a session that are not in a transaction block."""

    def __init__(
        self,
        runner: StatementRunner,
        guard: Guard,
        transactions: SessionTransactions,
        settings: SessionSettings,
        look_ups: LookUps,
    ) -> None:
        self._runner = runner
        self._look_ups = look_ups
        self._guard = guard
        self._transactions = transactions
        self._settings = settings
        self._jobs = runner.jobs
        self._notices = runner.notices

    def run(self, call: StatementCall) -> Result:
        """A statement and all that follows from it: a change of the schema may go on as a job."""
        # A statement about rows begins no job.
        mode = self._definition_mode(call) if call.prepared.is_definition else AUTOCOMMIT
        work = partial(self._run, call)
        while True:
            try:
                result, job_id = self.commit(work, mode, call.prepared.writes, call.sink)
                break
            except Busy as busy:
                if not mode.asks_for_job:
                    self._jobs.statement().stand_behind(busy.jobs)
                    continue
                # In a new epoch the statement is planned again: its turn may have come.
                with suppress(errors.StaleNode):
                    result, job_id = Result(call.prepared.command), self._jobs.queue(call.prepared.text, busy)
                    break
        return result if job_id is None else self._finish_job(result, job_id, mode.asks_for_job)

    def _run(self, call: StatementCall, transaction: Transaction) -> Result:
        result = self._runner.run(call, transaction)
        if call.prepared.is_query:
            self._look_ups.learn(call, transaction)
        return result

    def _finish_job(self, result: Result, job_id: JobId, is_asynchronous: bool) -> Result:
        # The statement can still be ended: only its first stage has been committed.
        self._guard.note_committed(is_whole=False)
        if is_asynchronous:
            self._jobs.let_go(job_id)
            return job_result(result.tag, job_id)
        self._jobs.statement().run(job_id)
        self._guard.note_committed()
        return result

    def begin_queued(self, job: Job) -> Collection[JobId]:
        """Begins the statement of a queued job; returns the jobs that it still has to wait for."""
        (prepared,) = prepare(job.statement)
        call = StatementCall(prepared)

        def work(transaction: Transaction) -> Result:
            # Who waits for the job waits for what its commit waits for.
            transaction.state.write_locks.run_job(job.id)
            return self._runner.run(call, transaction)

        try:
            with self._guard.statement():
                self.commit(work, self._definition_mode(call, job))
        except Busy as busy:
            return busy.jobs.keys()
        return ()

    def commit(
        self,
        work: Callable[[Transaction], T],
        mode: TransactionMode = BLOCK,
        may_write: bool = True,
        sink: RowSink | None = None,
        retries_max: int = RETRIES_MAX,
    ) -> tuple[T, JobId | None]:
        """Runs the work in a transaction and commits it; after a conflict, in another. Returns the job, too, that it
        has begun, which is this session's to run or let go."""
        advisory_changes, notices = self._transactions.advisory.changes, len(self._notices)
        settings, attempt = self._settings.mark(), 0
        while True:
            committed = False
            transaction = None
            try:
                transaction = self._transactions.begin(mode, may_write)
                try:
                    result = work(transaction)
                except BaseException as problem:
                    transaction.rollback()
                    if self._lacked_memory(problem):
                        raise _MemoryShortage(problem) from problem
                    raise
                job_id = self._commit(transaction)
                committed = True
                return result, job_id
            except (errors.SerializationFailure, errors.DeadlockDetected, _MemoryShortage) as problem:
                # What child transactions have built is not built again each time.
                has_children = transaction is not None and transaction.state.block.has_run
                if attempt == retries_max or has_children or not self._can_retry(problem, advisory_changes, sink):
                    if isinstance(problem, _MemoryShortage):
                        raise problem.failure from None
                    raise
                attempt += 1
                if not isinstance(problem, _MemoryShortage):
                    mode = replace(mode, is_contended=True)
                del self._notices[notices:]
            finally:
                self._settings.end_own(settings, committed)

    def _lacked_memory(self, problem: BaseException) -> bool:
        return isinstance(problem, (MemoryError, errors.OutOfMemory)) and self._guard.awaits_memory()

    def _can_retry(self, problem: Exception, advisory_changes: int, sink: RowSink | None) -> bool:
        advisory = self._transactions.advisory
        if (sink is not None and sink.is_begun) or advisory.changes != advisory_changes:
            return False
        # An advisory lock of the session may be the reason of the deadlock, and would be again.
        return not (advisory.any_held and isinstance(problem, errors.DeadlockDetected))

    def _commit(self, transaction: Transaction) -> JobId | None:
        if not transaction.state.declared.jobs:
            self._transactions.commit(transaction)
            return None
        job_id = transaction.state.declared.jobs[0].id
        # Held before another thread can see it, so that the node's worker leaves it to this session.
        self._jobs.hold(job_id)
        try:
            self._transactions.commit(transaction)
        except BaseException:
            self._jobs.let_go(job_id)
            raise
        reach("job.created")
        return job_id

    def _definition_mode(self, call: StatementCall, queued: Job | None = None) -> TransactionMode:
        typed = self._settings.typed
        return TransactionMode(
            autocommit=True,
            asks_for_job=queued is not None or is_asynchronous(call.prepared.parsed, typed.concurrently),
            queued=queued,
            drain_ms=typed.drain_timeout_ms,
            job_settings=self._settings.for_jobs(),
        )
