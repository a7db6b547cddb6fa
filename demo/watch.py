"""Observes a database through its `seachange.*` views, as any client could."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from demo.place import Place

_JOB = (
    "select status, stage, progress, rows_done, rows_total, eta, waiting_for, error, node"
    " from seachange.jobs where id = %s"
)
_STAGES = "select stage, duration_ms, rows from seachange.job_stages where job_id = %s order by number"
_VERSIONS = "select node, table_name, version, newest_version from seachange.leases order by node, table_name"
_SPARK = "select event from seachange.events where job_id = %s and event like '%%Spark application%%'"


@dataclass(frozen=True)
class JobState:
    status: str
    stage: str
    progress: float
    rows_done: int
    rows_total: int
    # When it will be over, by the rate so far.
    eta: dt.datetime | None
    waiting_for: str | None
    error: str | None
    node: str | None

    @property
    def is_over(self) -> bool:
        return self.status in ("succeeded", "failed", "canceled")


@dataclass(frozen=True)
class Lease:
    node: str
    table: str
    version: int
    newest: int


class Watch:
    def __init__(self, place: Place, process: str) -> None:
        self._connection = place.connect(process)
        self._connection.autocommit = True
        self._cursor = self._connection.cursor()

    def do(self, statement: str) -> None:
        self._cursor.execute(statement)

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        self._cursor.execute(query, parameters)
        return self._cursor.fetchall()

    def job(self, number: int) -> JobState:
        ((status, stage, progress, done, total, eta, waiting, error, node),) = self.ask(_JOB, number)
        return JobState(status, stage, float(progress), done or 0, total or 0, eta, waiting, error, node)

    def newest_job(self) -> int:
        ((number,),) = self.ask("select coalesce(max(id), 0) from seachange.jobs")
        return int(number)

    def stages(self, number: int) -> list[tuple[str, int, int]]:
        return [(stage, ms, rows) for stage, ms, rows in self.ask(_STAGES, number)]

    def spark(self, number: int) -> str | None:
        """What the events report of the Spark application that ran a job."""
        events = self.ask(_SPARK, number)
        return str(events[-1][0]) if events else None

    def leases(self) -> list[Lease]:
        return [Lease(node, table, version, newest) for node, table, version, newest in self.ask(_VERSIONS)]

    def close(self) -> None:
        self._connection.close()
