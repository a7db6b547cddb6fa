"""Schema changes in the log of a node: the stages of jobs as this node runs them, and what its commits publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seachange.changer.job import Job
from seachange.model.change_history import CHANGE_CODEC
from seachange.model.ids import Seq
from seachange.runtime.event_log import EventLog
from seachange.sql.text.normalized import normalize, without_passwords


@dataclass(slots=True)
class JobTrace:
    """Called with every new state of one job: logs those in which its status or stage is another one."""

    log: EventLog
    on_update: Callable[[Job], None]
    _last: tuple[str, str, bool] | None = None

    def __call__(self, job: Job) -> None:
        state = job.status.value, job.stage, bool(job.waiting)
        if self.log.is_on and state != self._last:
            self._last = state
            self._log(job)
        self.on_update(job)

    def _log(self, job: Job) -> None:
        failure = job.failure
        self.log.info(
            "schema change",
            job=job.id,
            status=job.status.value,
            phase=job.phase.value,
            stage=job.stage or None,
            rows=job.rows_read or None,
            waiting_for=job.waiting or None,
            sqlstate=failure.sqlstate if failure is not None else None,
            statement=_shown(self.log, job.statement),
        )


def log_published(log: EventLog, change: str, seq: Seq) -> None:
    """`change` is the record of the commit for the history."""
    if not log.is_on or not change:
        return
    record = CHANGE_CODEC.decode(change)
    log.info(
        "schema change published",
        change=seq,
        role=record.planned[0].role,
        database=record.planned[0].database,
        strategy=record.strategy,
        objects=", ".join(changed.what for changed in record.objects),
        jobs=", ".join(map(str, record.jobs)) or None,
        statement=_shown(log, record.statement),
    )


def _shown(log: EventLog, text: str) -> str:
    return without_passwords(text) if log.shows_literals else normalize(text)
