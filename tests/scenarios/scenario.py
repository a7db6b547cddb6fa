"""A database whose changes run step by step, so that a scenario can do something at every moment of one."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import check

Row = tuple[Any, ...]
Action = Callable[[], Any]

# The moments of a change, in the order in which they come; not every change has all of them.
CREATED = "created"
MOMENTS = ("job.drained", "job.raised", "job.unit", "job.built", "job.attached", "job.validated", "job.published")
ROWS = 100


class Scenario:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._sessions: list[Session] = []

    # Statements.

    def session(self) -> Session:
        self._sessions.append(Session(self.node))
        return self._sessions[-1]

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        session = Session(self.node)
        try:
            return list(session.execute(sql, values).rows)
        finally:
            session.close()

    def refuse(self, sql: str) -> str:
        """The SQLSTATE that a statement is refused with."""
        with pytest.raises(errors.Error) as caught:
            self.run(sql)
        return caught.value.sqlstate

    # Changes.

    def begin(self, statement: str) -> JobId:
        """A statement with CONCURRENTLY: its first stage, and a job without a runner."""
        session = Session(self.node)
        session.execute("set seachange.concurrently = 'async'")
        ((job_id,),) = session.execute(statement).rows
        session.close()
        return JobId(job_id)

    def finish(self, job_id: JobId, drain_ms: int = 50) -> str:
        """Runs a job to its end; gives the SQLSTATE that it failed with, "" if it did not."""
        job = self.run_job(job_id, drain_ms)
        assert job.is_finished
        return "" if job.failure is None else job.failure.sqlstate

    def run_job(self, job_id: JobId, drain_ms: int = 50) -> Job:
        """To its end, or to a pause."""
        never = threading.Event()

        def pause(seconds: float) -> None:
            never.wait(seconds)

        conditions = Conditions(pause, SessionInterrupts(), lambda job: None, drain_ms)
        with self.node.jobs.holding(job_id):
            return self.node.jobs.run(job_id, conditions)

    def change(self, statement: str, meanwhile: dict[str, Action] | Action | None = None) -> str:
        """A change from its beginning to its end, with something done at some of its moments, or at each."""
        actions = meanwhile if isinstance(meanwhile, dict) else {}
        if callable(meanwhile):
            actions = dict.fromkeys((CREATED, *MOMENTS), meanwhile)
        job_id = self.begin(statement)
        actions.get(CREATED, lambda: None)()
        for moment in MOMENTS:
            if moment in actions:
                FAULTS.arm(moment, actions[moment])
        try:
            return self.finish(job_id)
        finally:
            FAULTS.disarm()

    # Verdicts.

    def judge(self) -> None:
        assert [str(anomaly) for anomaly in check(self.node)] == []

    def entries(self, index: str) -> int:
        """How many entries an index has, counted in itself."""
        txn = self.node.begin()
        try:
            table = next(t for t in txn.schema.tables() if any(i.name == index for i in t.indexes))
            found = next(i for i in table.indexes if i.name == index)
            parts = txn.reads.index_parts(table, found)
            in_files = sum(file.segment.rows - len(file.superseded) for file in parts.files)
            return int(in_files + sum(rows.num_rows for _, rows in parts.inline))
        finally:
            txn.rollback()

    def close(self) -> None:
        for session in self._sessions:
            session.close()
