"""A node: a process' hold on one database. Sessions begin transactions here.

The heartbeat thread renews the node's epoch and publishes its low-water mark; it shares no lock and no connection with
statements, so a busy node stays alive. The follower keeps an idle node up to date. The keeper thread compacts and
collects garbage.

**Invariant:** an epoch that has ended fails only the transactions that were open in it. What begins afterwards (a
session, a transaction, a job) begins in a new epoch, which `in_epoch` starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

from seachange import errors
from seachange.engine.context.pace import PaceMeter
from seachange.engine.context.retention import Retention
from seachange.engine.jobs.job_manager import JobManager
from seachange.engine.locks.advisory import AdvisoryLocks
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.log_follower import LogFollower
from seachange.engine.node.maintenance_thread import MaintenanceThread, compact_index
from seachange.engine.node.watchdog import Watchdog
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import encode_holders
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Table
from seachange.pipeline.compaction.gc import collect_garbage
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.process import resident_bytes
from seachange.storage.duck import Duck

NODE_EXPIRY_MS = 10_000
RETENTION_US = 24 * 3_600 * 1_000_000
_BEATS_PER_EXPIRY = 5
_REGISTRATIONS_MAX = 10

T = TypeVar("T")


class Node:
    def __init__(
        self, parts: NodeParts, name: str, expiry_ms: int = NODE_EXPIRY_MS, retention_us: int = RETENTION_US
    ) -> None:
        self.parts = parts
        self.name = name
        self.expiry_ms = expiry_ms
        self._renewing = threading.RLock()
        # Set when the next heartbeat is not to wait for its time.
        self._beat_now = threading.Event()
        try:
            self._epoch = self._register()
        except errors.Error:
            parts.close()
            raise
        self._actors = count(1)
        self._pace = PaceMeter(parts.meters)
        self._stopped = threading.Event()
        self.watchdog = Watchdog(parts.clock, resident_bytes)
        self._follower = LogFollower(parts.catalog, parts.clock, self._catch_up, self.follow, self._beat_seconds)
        self._threads = [
            threading.Thread(target=work, name=f"seachange-{name}", daemon=True)
            for name, work in (("beat", self._keep_beating), ("follow", self._follower.run))
        ]
        for thread in self._threads:
            thread.start()
        self.retention = Retention(retention_us)
        self.keeper = MaintenanceThread(parts, self.retention)
        self.keeper.start(lambda: self._epoch)
        self.jobs = JobManager(parts, self._live_epoch, self.retention)
        self.jobs.start()

    @property
    def epoch(self) -> EpochState:
        return self._epoch

    @property
    def duck(self) -> Duck:
        return self.parts.duck

    def _register(self) -> EpochState:
        """Somebody whose clock is far ahead may end an epoch before it has read the schema."""
        for _ in range(_REGISTRATIONS_MAX - 1):
            with suppress(errors.StaleNode):
                return self._new_epoch()
        return self._new_epoch()

    def _new_epoch(self) -> EpochState:
        parts = self.parts
        tell = self._beat_now.set
        return EpochState(parts.catalog, parts.warehouse, self.name, self.expiry_ms, parts.clock, tell, parts.release)

    def new_client(self, notices: list[str]) -> SessionContext:
        return SessionContext(next(self._actors), advisory=AdvisoryLocks(notices))

    def begin(
        self,
        isolation: Isolation = Isolation.READ_COMMITTED,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
    ) -> Transaction:
        if self._stopped.is_set():
            raise errors.NodeClosed()
        return self.in_epoch(lambda epoch: Transaction(self.parts, epoch, isolation, as_of, client, may_write))

    def in_epoch(self, work: Callable[[EpochState], T]) -> T:
        """Runs `work` in the node's epoch, and again in a new one if the catalog says that the epoch has ended. A node
        that gets no processor time may lose several."""
        for _ in range(_REGISTRATIONS_MAX - 1):
            epoch = self._live_epoch()
            try:
                return work(epoch)
            except errors.StaleNode:
                self._renew(epoch)
        return work(self._live_epoch())

    def sequence_at(self, timestamp_us: int) -> Seq:
        return self.parts.catalog.sequence_at(timestamp_us)

    def _renew(self, stale: EpochState) -> None:
        """Starts over under a new epoch, unless another thread has done so already."""
        may_wait()
        with self._renewing:
            if self._epoch is stale and not self._stopped.is_set():
                self._epoch = self._register()
                stale.locks.end()

    def _live_epoch(self) -> EpochState:
        """A new one if the last has ended. An epoch without a heartbeat within its expiry may have been ended by any
        other node, and the catalog says so only to a commit or a read of rows: it is asked first."""
        if self._epoch.ended:
            self._renew(self._epoch)
        if self._is_late:
            may_wait()
            with self._renewing:
                if self._is_late:
                    self.beat()
        return self._epoch

    @property
    def _is_late(self) -> bool:
        return self.parts.clock.steady_us() - self._epoch.beaten_us > self.expiry_ms * 1_000

    @property
    def _beat_seconds(self) -> float:
        return self.expiry_ms / 1_000 / _BEATS_PER_EXPIRY

    def _keep_beating(self) -> None:
        while not self._stopped.is_set():
            self._beat_now.wait(self._beat_seconds)
            self._beat_now.clear()
            # The catalog may be out of reach for now; the epoch outlives short interruptions.
            with suppress(errors.OperationalError):
                self.beat()

    def beat(self) -> None:
        """One heartbeat: renews the epoch and publishes its marks. It waits for nothing that a statement
        may hold, or a long one would end the epoch."""
        epoch = self._epoch
        try:
            marks = epoch.registry.marks()
            sent_us = self.parts.clock.steady_us()
            self.parts.catalog.heartbeat(epoch.epoch, marks.low, marks.write, encode_holders(marks), self._pace.read())
            epoch.beaten_us = sent_us
        except errors.StaleNode:
            self._renew(epoch)

    def follow(self) -> None:
        """An idle node follows the log too, so that its mark holds nothing up; what no snapshot needs is forgotten."""
        self._catch_up()
        epoch = self._epoch
        try:
            epoch.housekeeping(epoch.registry.mark())
            epoch.shared.release_left()
        except errors.StaleNode:
            self._renew(epoch)

    def read_head(self) -> None:
        """What was committed before this, on any node, is known to this one afterwards."""
        self._catch_up()

    def _catch_up(self) -> None:
        epoch = self._epoch
        try:
            epoch.catch_up()
            epoch.tables.look()
        except errors.StaleNode:
            self._renew(epoch)

    def compact(self, table: Table, full: bool = True) -> int:
        """Folds the deltas of all indexes of a table now; gives how many got a new generation."""

        def compact_in(epoch: EpochState) -> int:
            return sum(compact_index(self.parts, epoch, table, index, full) for index in table.indexes)

        folded = self.in_epoch(compact_in)
        self.keeper.compactions += folded
        return folded

    def collect_garbage(self, retention_us: int | None = None) -> int:
        """Deletes what nothing can reach any more now; gives the number of files."""
        keep = self.retention.us if retention_us is None else retention_us
        self.follow()
        self.beat()
        return collect_garbage(self.parts.catalog, self._epoch.epoch, self.parts.warehouse, keep)

    def statistics(self) -> dict[str, int]:
        epoch = self._epoch
        return {
            "epoch": epoch.epoch,
            "applied": epoch.applied,
            "commits": epoch.committer.commits,
            "catalog_commits": epoch.committer.catalog_commits,
            "open_transactions": len(epoch.registry),
            "compactions": self.keeper.compactions,
        }

    def abandon(self) -> None:
        """Ends the epoch for other nodes, when the process is about to end with statements that do not stop."""
        self.parts.catalog.end_node(self._epoch.epoch)

    def close(self) -> None:
        """Ends the epoch; open transactions of it can no longer commit."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._beat_now.set()
        self._follower.stop()
        self.jobs.stop()
        self._epoch.locks.end()
        self.watchdog.stop()
        self.keeper.stop()
        for thread in self._threads:
            thread.join()
        self.parts.sequences.give_back()
        try:
            self.parts.catalog.end_node(self._epoch.epoch)
        finally:
            self.parts.close()
