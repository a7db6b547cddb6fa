"""The turn of a statement that changes what another change is at work on, and the job that it begins.

**Invariant:** a change of an object begins when those before it are over, as they were sent; one that gives the id of
its job at once is queued behind them, any other waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from seachange import errors
from seachange.changer.job import Job, Queued
from seachange.engine.context.session_facts import SessionFacts
from seachange.engine.context.statement_calls import StatementCall
from seachange.engine.context.transaction_mode import ALONE, TransactionMode
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.session.autocommit import Autocommit
from seachange.engine.session.job_session import JobStatement, enqueue, is_asynchronous, job_result
from seachange.engine.session.statement_guard import Guard
from seachange.engine.transaction.transaction import Transaction
from seachange.model.jobs import JobId
from seachange.sql.change.running_changes import Busy
from seachange.sql.port.result import Result
from seachange.sql.run.execute import prepare


@dataclass(frozen=True, slots=True)
class DdlQueue:
    """`run_in` is how the session runs a statement in a transaction."""

    node: Node
    session: SessionFacts
    client: SessionContext
    notices: list[str]
    guard: Guard
    own: Autocommit
    run_in: Callable[[StatementCall, Transaction], Result]

    def run(self, call: StatementCall) -> Result:
        """A statement with all that follows from it: a change of the schema may go on as a job."""
        result, begun = self._run_in_turn(call)
        if begun is None:
            return result
        # It may be ended again: only its first stage has been committed.
        self.guard.is_settled = False
        if self._is_asynchronous(call):
            self.node.jobs.let_go(begun)
            return job_result(result.tag, begun)
        self.job_statement().run(begun)
        self.guard.is_settled = True
        return result

    def _run_in_turn(self, call: StatementCall) -> tuple[Result, JobId | None]:
        """With the job that it has begun, after those changes of the same objects that it waits for."""
        work = partial(self._run_first, call)
        while True:
            try:
                return self.own.until_done(work, call.prepared.writes, call.sink)
            except Busy as busy:
                if not self._is_asynchronous(call):
                    self.job_statement().stand_behind(busy.jobs)
                    continue
                # Under a new epoch the statement is looked at again: its turn may have come.
                with suppress(errors.StaleNode):
                    return Result(call.prepared.command), self._queue(call, busy)

    def _queue(self, call: StatementCall, busy: Busy) -> JobId:
        settings = self.session.values.given()
        behind = tuple(sorted(busy.jobs))
        queued = Queued(self.session.user, self.session.database, settings, busy.descriptors, behind)
        return enqueue(self.node, call.prepared.text, queued)

    def begin_queued(self, job: Job) -> Collection[JobId]:
        """Begins the statement of a job, which was queued; gives those that it still has to wait for."""
        (prepared,) = prepare(job.statement)
        work = partial(self._run_first, StatementCall(prepared), queued=job)
        try:
            self.guard.run(lambda: self.own.until_done(work))
        except Busy as busy:
            return busy.jobs.keys()
        return ()

    def _run_first(self, call: StatementCall, transaction: Transaction, queued: Job | None = None) -> Result:
        # What is about rows begins no job.
        transaction.standing = self._standing(call, queued) if call.prepared.is_definition else ALONE
        return self.run_in(call, transaction)

    def _standing(self, call: StatementCall, queued: Job | None) -> TransactionMode:
        return TransactionMode(
            alone=True,
            asks_for_job=queued is not None or self._is_asynchronous(call),
            queued=queued,
            drain_ms=self.session.values.typed.drain_timeout_ms,
            job_settings=self.session.values.for_jobs(),
        )

    def wait_in_block(self, transaction: Transaction, busy: Busy) -> None:
        """Until other changes of the object are over; what they have done must be in the snapshot then."""
        self.job_statement().stand_behind(busy.jobs, in_block=True)
        head = transaction.epoch.catch_up()
        transaction.start_statement()
        if transaction.snapshot < head:
            jobs = ", ".join(map(str, busy.jobs))
            raise errors.SerializationFailure(detail=f"job {jobs} has changed the object since the snapshot was taken")

    def job_statement(self) -> JobStatement:
        limits = self.session.values.typed
        waits_ms = limits.drain_timeout_ms, limits.lock_timeout_ms
        return JobStatement(self.node, self.client.interrupts, self.notices.append, *waits_ms)

    def _is_asynchronous(self, call: StatementCall) -> bool:
        return is_asynchronous(call.prepared.parsed, self.session.values.typed.concurrently)
