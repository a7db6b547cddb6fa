"""The epoch under which a node works, and its renewal when another node has ended it.

**Invariant:** an epoch that has ended fails only the transactions that were open in it. What begins afterwards (a
session, a transaction, a job) begins in a new epoch, which `run` starts.

**Invariant:** an epoch works only with the files of the database that the catalog names: when the database is moved,
all epochs end, and none begins over the old files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from seachange import errors
from seachange.engine.context.pace import PaceMeter
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import encode_holders
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.sessions import AskedSession
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.threads import start_thread

_REGISTRATIONS_MAX = 10

T = TypeVar("T")


class NodeEpoch:
    """`beat_soon` is set when the marks of the node should be published before the next heartbeat is due."""

    def __init__(self, parts: NodeParts, name: str, expiry_ms: int) -> None:
        self.parts = parts
        self.expiry_ms = expiry_ms
        self._name = name
        self.beat_soon = threading.Event()
        self._pace = PaceMeter(parts.meters)
        self._renewing = threading.RLock()
        self._is_closed = False
        # Requests to sessions that no thread could be started for.
        self._unanswered: tuple[AskedSession, ...] = ()
        self.current = self._register()

    def _register(self) -> EpochState:
        """Retried, since a node whose clock is far ahead may end an epoch before it has read the schema."""
        for _ in range(_REGISTRATIONS_MAX - 1):
            with suppress(errors.StaleNode):
                return self._new_epoch()
        return self._new_epoch()

    def _new_epoch(self) -> EpochState:
        parts = self.parts
        epoch = EpochState(
            parts.catalog, parts.warehouse, self._name, self.expiry_ms, parts.clock, self.beat_soon.set, parts.release
        )
        # After the registration: a move ends all epochs that are registered before it.
        if parts.identity is not None and parts.catalog.identity() != parts.identity:
            parts.catalog.end_node(epoch.epoch)
            raise errors.DatabaseMoved(path=parts.files.address)
        # The catalog knows the process before it holds anything.
        self._send_beat(epoch)
        return epoch

    def run(self, work: Callable[[EpochState], T]) -> T:
        """Runs `work` in the node's epoch, and again in a new one if the catalog reports that the epoch has ended. A
        node that gets no CPU time may lose several."""
        for _ in range(_REGISTRATIONS_MAX - 1):
            epoch = self.live()
            try:
                return work(epoch)
            except errors.StaleNode:
                self._renew(epoch)
        return work(self.live())

    def live(self) -> EpochState:
        """The current epoch, or a new one if it has ended. An epoch without a heartbeat within its expiry may have been
        ended by any other node, which the catalog reports only to commits and reads of rows: so it is asked first."""
        if self.current.ended:
            self._renew(self.current)
        if self._is_late:
            may_wait()
            with self._renewing:
                if self._is_late:
                    self.beat()
        return self.current

    @property
    def is_live(self) -> bool:
        """Whether `live` would return the current epoch at once."""
        return not self.current.ended and not self._is_late

    @property
    def _is_late(self) -> bool:
        return self.parts.clock.steady_us() - self.current.beaten_us > self.expiry_ms * 1_000

    def _renew(self, stale: EpochState) -> None:
        """Starts a new epoch, unless another thread has done so already."""
        may_wait()
        with self._renewing:
            if self.current is stale and not self._is_closed:
                self.current = self._register()
                stale.locks.end()
                if stale.is_torn:
                    # The catalog believes that it is alive. If it cannot be reached now, it expires.
                    with suppress(errors.OperationalError):
                        self.parts.catalog.end_node(stale.epoch)

    def beat(self) -> None:
        epoch = self.current
        if epoch.is_torn:
            self._renew(epoch)
            return
        try:
            self._send_beat(epoch)
        except errors.StaleNode:
            self._renew(epoch)

    def _send_beat(self, epoch: EpochState) -> None:
        marks = epoch.registry.marks()
        sent_us = self.parts.clock.steady_us()
        published = encode_holders(marks, self.parts.sessions.records(), self.parts.statements.read())
        beat = self.parts.catalog.heartbeat(epoch.epoch, marks.low, marks.write, published, self._pace.read())
        epoch.beaten_us = sent_us
        self._unanswered = (*self._unanswered, *beat.asked)
        if self._unanswered:
            # On a thread of its own: a heartbeat waits for no session.
            start_thread(threading.Thread(target=self.parts.sessions.answer, args=(self._unanswered,), daemon=True))
            self._unanswered = ()

    def catch_up(self) -> None:
        """Afterwards this node has applied everything that was committed on any node before the call."""
        epoch = self.current
        try:
            epoch.catch_up()
            epoch.tables.refresh()
        except errors.StaleNode:
            self._renew(epoch)

    def tidy(self) -> None:
        """Drops what no snapshot needs."""
        epoch = self.current
        try:
            epoch.housekeeping(epoch.registry.mark())
            epoch.shared.release_left()
        except errors.StaleNode:
            self._renew(epoch)

    def close(self) -> None:
        """The epoch is not renewed any more."""
        self._is_closed = True
