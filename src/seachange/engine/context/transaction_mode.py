"""What a transaction is to the statements that it is begun for: a block, or one statement that may go on as a job."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.changer.job import Job


@dataclass(frozen=True, slots=True)
class TransactionMode:
    """`queued` is the job whose statement was queued, and is run by this transaction; `drain_ms` and `job_settings` are
    kept with every job that begins."""

    alone: bool = False
    asks_for_job: bool = False
    queued: Job | None = None
    drain_ms: int | None = None
    job_settings: tuple[tuple[str, str], ...] = ()


BLOCK = TransactionMode()
ALONE = TransactionMode(alone=True)
