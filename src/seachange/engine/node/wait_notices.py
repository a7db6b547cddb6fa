"""Notices to sessions that have waited for a second: for whom they wait, while they wait.

**Invariant:** each wait is reported once; a session that does not wait costs nothing but a look at its record.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from seachange import errors
from seachange.engine.context.background import Alarm
from seachange.engine.locks.lock_details import mode_name, name_party
from seachange.engine.locks.lock_graph import Party
from seachange.engine.replica.node_epoch import NodeEpoch
from seachange.engine.transaction.shown_sessions import Waits, find_waits
from seachange.model.ids import KeyHash
from seachange.model.locking import LockMode, QueueMode
from seachange.model.sessions import SessionActivity

# How long a wait lasts before it is reported, and how often it is looked for.
REPORTED_US = 1_000_000
_LOOK_US = 500_000


@dataclass(slots=True)
class _KnownWait:
    """A wait of a statement, since it was first seen."""

    statement_us: int
    key: KeyHash
    since_us: int
    is_reported: bool = False


class WaitNotices:
    def __init__(self, epoch: NodeEpoch) -> None:
        self._epoch = epoch
        self._alarm = Alarm()
        self._known: dict[int, _KnownWait] = {}

    def step(self, now_us: int) -> int:
        with suppress(errors.Error):
            self._look(now_us)
        return now_us + _LOOK_US

    def wait(self, seconds: float) -> None:
        self._alarm.wait(seconds)

    def wake(self) -> None:
        self._alarm.wake()

    def _look(self, now_us: int) -> None:
        parts, epoch = self._epoch.parts, self._epoch.current
        before_us = parts.clock.wall_us() - _LOOK_US
        begun = {
            record.number: record.statement_us
            for record in parts.sessions.records()
            if record.state is SessionActivity.ACTIVE and record.statement_us <= before_us
        }
        if not begun:
            self._known.clear()
            return
        waits, known = find_waits(parts, epoch), {}
        for number, statement_us in begun.items():
            party = Party(epoch.epoch, number)
            mode, key = waits.locks.get(party, (None, None))
            # What waits for jobs and for older transactions says so itself.
            if mode is None or key is None or isinstance(mode, QueueMode) or not waits.edges.get(party):
                continue
            before = self._known.get(number)
            is_same = before is not None and (before.statement_us, before.key) == (statement_us, key)
            wait = before if before is not None and is_same else _KnownWait(statement_us, key, now_us)
            known[number] = wait
            if not wait.is_reported and now_us - wait.since_us >= REPORTED_US:
                wait.is_reported = True
                parts.sessions.tell(number, self._describe(party, mode, key, waits))
        self._known = known

    def _describe(self, party: Party, mode: LockMode, key: KeyHash, waits: Waits) -> str:
        epoch = self._epoch.current
        others = ", ".join(name_party(other, epoch.epoch) for other in sorted(waits.edges[party]))
        return (
            f"waits for {mode_name(mode)} on {epoch.describe_key(key)}, held by process {others}; "
            "seachange.sessions shows what it does, and pg_terminate_backend(pid) ends it"
        )
