"""Named fault points: places where a test may kill the process, raise an error or wait.

A point is declared once, in `POINTS`, with a sentence on what has just happened; `reach` passes it. In production
nothing is armed and `reach` costs one lookup. `SEACHANGE_FAULT=name[:occurrence][:action]` arms one (action `kill`, the
default, is SIGKILL of this process; `stop` is SIGSTOP; `enospc` and `eio` raise that OSError).
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable

POINTS: dict[str, str] = {
    "backup.copied": "a segment file is in the backup, which has no manifest yet",
    "commit.queued": "a transaction has asked for its commit",
    "commit.locked": "the sequencer lock is held, nothing is written",
    "commit.written": "the commit's rows are written, the catalog transaction is open",
    "commit.decided": "the catalog transaction has committed, the client has no answer",
    "commit.applied": "the node has applied its own commit, the client has no answer",
    "segment.reserved": "intents are registered, no file exists",
    "segment.written": "a file is complete under its temporary name, not fsynced",
    "segment.synced": "the file is fsynced under its temporary name",
    "segment.renamed": "the file has its name, the folder is not fsynced",
    "segment.published": "the file and its folder are fsynced, no commit refers to it",
    "identity.proposed": "an id for a new database is in its folder, the catalog has none",
    "identity.bound": "the catalog has the id of a new database, the folder has only proposals",
    "identity.settled": "the folder has the id of the database, and still proposals",
    "copy.noted": "the place of a copy names the database that is copied there, and has no file of it",
    "copy.copied": "a copy has all files that the catalog referred to a moment ago",
    "copy.moved": "the catalog has the id of the copy, the copy has only the proposed id",
    "bulk.sorted": "a bulk load has sorted its input, no segment is written",
    "bulk.written": "all segments of a bulk load are published, the commit is not asked for",
    "compaction.planned": "a compaction has chosen what to rewrite",
    "compaction.written": "the new generation's segments are published, the swap is not asked for",
    "compaction.swapped": "the new generation is in the log",
    "export.written": "the files of an export are published, the catalog does not know of it",
    "export.forgotten": "the exports of a table have expired, their files still exist",
    "export.recorded": "the catalog knows of an export, the files that it replaces still exist",
    "gc.collected": "the catalog has removed segments, their files still exist",
    "gc.deleted": "one file has been deleted, the catalog still lists it as garbage",
    "gc.forgotten": "the catalog no longer lists the deleted files",
    "job.created": "a statement has committed the first stage of a change and its job, which has no runner",
    "job.taken": "a runner has made the job its own",
    "job.drained": "older writers were waited for, the raise is not asked for",
    "job.raised": "no older writer can commit any more",
    "job.unit": "the record of the job has a finished unit of a backfill",
    "job.built": "a backfill is complete, its generations are not attached",
    "job.attached": "the generations of a backfill are in the log",
    "job.validated": "a constraint was found to hold, the record does not say so",
    "job.published": "a stage has published its versions",
    "job.reverting": "the record says that the change is being reverted, nothing has been reverted",
    "job.finished": "the record says that the job is finished, the client has no answer",
    "restore.written": "some rows have the values of a dropped column back, which is still hidden",
    "restore.done": "all rows have the values of a dropped column back, the record does not say so",
    "block.built": "child transactions have done all that comes before the COMMIT of their block",
    "block.committed": "the COMMIT of a block with child transactions is in the log, the client has no answer",
    "block.reverted": "the child transactions of a block are reverted, it still holds its locks",
    "migration.started": "a catalog migration has begun",
    "migration.applied": "a migration's statements have run, its transaction is open",
    "migration.committed": "a migration has committed",
}

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO}


class FaultPoints:
    """The armed faults of this process. An action runs once, at the n-th passage of its point."""

    def __init__(self) -> None:
        self._armed: dict[str, tuple[int, Callable[[], None]]] = {}
        self._passed: dict[str, int] = {}
        self._lock = threading.Lock()

    def arm(self, name: str, action: Callable[[], None], occurrence: int = 1) -> None:
        if name not in POINTS:
            raise KeyError(f"no fault point is called {name!r}")
        with self._lock:
            self._armed[name] = (occurrence, action)
            self._passed[name] = 0

    def disarm(self) -> None:
        with self._lock:
            self._armed.clear()

    def counts(self) -> dict[str, int]:
        """How often each point was passed since the first was armed."""
        with self._lock:
            return dict(self._passed)

    def reach(self, name: str) -> None:
        if not self._armed:
            return
        with self._lock:
            occurrence, action = self._armed.get(name, (0, _nothing))
            self._passed[name] = self._passed.get(name, 0) + 1
            due = self._passed[name] == occurrence
        if due:
            action()


def _nothing() -> None:
    pass


def _signal_self(number: signal.Signals) -> None:
    # To this thread: a signal to the process may be delivered to another thread, while this one continues.
    signal.pthread_kill(threading.get_ident(), number)


def _raise(code: int) -> None:
    raise OSError(code, os.strerror(code))


def arm_from(text: str, faults: FaultPoints) -> None:
    """Arms the fault in `SEACHANGE_FAULT`."""
    name, _, rest = text.partition(":")
    count, _, action = rest.partition(":")
    occurrence = int(count) if count else 1
    if action in _ERRORS:
        faults.arm(name, lambda: _raise(_ERRORS[action]), occurrence)
    else:
        faults.arm(name, lambda: _signal_self(_SIGNALS[action or "kill"]), occurrence)


FAULTS = FaultPoints()
if os.environ.get("SEACHANGE_FAULT"):
    arm_from(os.environ["SEACHANGE_FAULT"], FAULTS)
reach = FAULTS.reach
