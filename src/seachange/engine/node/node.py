"""A node: one process' connection to one database. Sessions begin transactions here.

Its background work is stepped by a thread each: the watchdog, the heartbeat, the log follower, maintenance and jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from seachange import errors
from seachange.engine.context.background import BackgroundThread, BackgroundWork
from seachange.engine.context.statement_context import BLOCK, StatementContext, TransactionMode
from seachange.engine.exports.table_exports import TableExports
from seachange.engine.jobs.job_manager import ROUND_US, JobManager
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.heartbeat import Heartbeat, beat_us
from seachange.engine.node.log_follower import LogFollower
from seachange.engine.node.maintenance import NodeMaintenance, compact_index
from seachange.engine.node.wait_notices import WaitNotices
from seachange.engine.node.watchdog import Watchdog
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_epoch import NodeEpoch
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.checked_snapshot import CheckedSnapshot
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Table
from seachange.pipeline.compaction.gc import collect_garbage
from seachange.runtime.memory_wall import MEMORY_WALL
from seachange.runtime.process import resident_bytes
from seachange.storage.duck import Duck

NODE_EXPIRY_MS = 10_000

T = TypeVar("T")


class Node:
    """Without `threads`, its background work is stepped by the caller (`background`)."""

    def __init__(
        self,
        parts: NodeParts,
        name: str,
        expiry_ms: int = NODE_EXPIRY_MS,
        threads: bool = True,
    ) -> None:
        self.parts = parts
        self.name = name
        self.expiry_ms = expiry_ms
        try:
            self._epoch = NodeEpoch(parts, name, expiry_ms)
        except errors.Error:
            parts.close()
            raise
        parts.sessions.begin(self._epoch.current.epoch)
        self._stopped = threading.Event()
        self.watchdog = Watchdog(parts.clock, resident_bytes, MEMORY_WALL)
        self.retention = parts.retention
        self.follower = LogFollower(self._epoch, beat_us(expiry_ms))
        self.exports = TableExports(self._epoch)
        self.maintenance = NodeMaintenance(self._epoch, self.exports)
        self.jobs = JobManager(self._epoch, self.watchdog.watch)
        self.background: dict[str, BackgroundWork] = {
            "watchdog": self.watchdog,
            "heartbeat": Heartbeat(self._epoch),
            "follower": self.follower,
            "maintenance": self.maintenance,
            "jobs": self.jobs,
            "waits": WaitNotices(self._epoch),
        }
        # A node that has just been opened leaves orphaned jobs to others for a round: it may be about to be set up.
        delays_us = {"jobs": ROUND_US}
        self.threads = {
            name: BackgroundThread(name, work, parts.clock, delays_us.get(name, 0))
            for name, work in self.background.items()
        }
        if threads:
            self.start()

    def start(self) -> None:
        """Starts the threads of the background work."""
        for thread in self.threads.values():
            thread.start()

    @property
    def epoch(self) -> EpochState:
        return self._epoch.current

    @property
    def is_live(self) -> bool:
        """Whether transactions begin in the current epoch."""
        return not self._stopped.is_set() and self._epoch.is_live

    @property
    def duck(self) -> Duck:
        return self.parts.duck

    def new_client(self, notices: list[str]) -> SessionContext:
        return SessionContext(self.parts.sessions.take_number(), advisory=AdvisoryLocks(notices))

    def begin(
        self,
        isolation: Isolation = Isolation.READ_COMMITTED,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
        mode: TransactionMode = BLOCK,
        context: StatementContext | None = None,
    ) -> Transaction:
        if self._stopped.is_set():
            raise errors.NodeClosed()
        return self.in_epoch(
            lambda epoch: Transaction(self.parts, epoch, isolation, as_of, client, may_write, mode, context)
        )

    def begin_check(self) -> CheckedSnapshot:
        """For the consistency checker."""
        return CheckedSnapshot(self.begin(Isolation.REPEATABLE_READ))

    def in_epoch(self, work: Callable[[EpochState], T]) -> T:
        """Runs `work` in the node's epoch, and again in a new one if the catalog reports that the epoch has ended."""
        return self._epoch.run(work)

    def sequence_at(self, timestamp_us: int) -> Seq:
        return self.parts.catalog.sequence_at(timestamp_us)

    def beat(self) -> None:
        self._epoch.beat()

    def follow(self) -> None:
        """One round of the follower."""
        self._epoch.catch_up()
        self._epoch.tidy()

    def read_head(self) -> None:
        """Afterwards this node has applied everything that was committed on any node before the call."""
        self._epoch.catch_up()

    def compact(self, table: Table, full: bool = True) -> int:
        """Compacts the deltas of all indexes of a table now; returns how many got a new generation."""

        def compact_in(epoch: EpochState) -> int:
            return sum(compact_index(self.parts, epoch, table, index, full) for index in table.indexes)

        compacted = self.in_epoch(compact_in)
        self.maintenance.compactions += compacted
        return compacted

    def collect_garbage(self, retention_us: int | None = None) -> int:
        """Collects garbage now; returns the number of deleted files."""
        keep = self.retention.us if retention_us is None else retention_us
        self.follow()
        self.beat()
        files = collect_garbage(self.parts.catalog, self.epoch.epoch, self.parts.warehouse, keep)
        self.parts.log.info("garbage collection", files=files)
        return files

    def statistics(self) -> dict[str, int]:
        epoch = self.epoch
        return {
            "epoch": epoch.epoch,
            "applied": epoch.applied,
            "commits": epoch.committer.commits,
            "catalog_commits": epoch.committer.catalog_commits,
            "open_transactions": len(epoch.registry),
            "compactions": self.maintenance.compactions,
        }

    def abandon(self) -> None:
        """Ends the epoch for other nodes, when the process is about to exit with statements that do not stop."""
        self.parts.catalog.end_node(self.epoch.epoch)

    def close(self) -> None:
        """Ends the epoch; its open transactions can no longer commit."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._epoch.close()
        self.jobs.stop()
        self.epoch.locks.end()
        for thread in self.threads.values():
            thread.stop()
        # A running step of the job manager may have started one more.
        self.jobs.stop()
        self.follower.close()
        self.parts.sequences.give_back()
        try:
            self.parts.catalog.end_node(self.epoch.epoch)
        finally:
            self.exports.close()
            self.parts.close()
