"""The drain: before writers with older versions are fenced, they get some time to finish.

**Invariant:** a drain is an optimisation. The raise that follows makes the step safe; a drain that ends early, for
whatever reason, makes late writers check their rows again, and loses no row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from seachange import errors
from seachange.changer.ports import Changes, Holder
from seachange.model.ids import Seq
from seachange.runtime.clock import Clock

DRAIN_TIMEOUT_MS = 5_000
# Pauses between polls of the marks: growing from the first to the second.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.002, 0.05
_MS = 1_000


def _ignore_duration(took_us: int) -> None:
    pass


class Drain:
    """`pause` waits for some seconds, or raises if the work is to end; `lock_timeout_ms` 0 means no timeout. `took`
    receives the duration of each wait in microseconds."""

    def __init__(
        self,
        changes: Changes,
        clock: Clock,
        pause: Callable[[float], None],
        timeout_ms: int = DRAIN_TIMEOUT_MS,
        lock_timeout_ms: int = 0,
        took: Callable[[int], None] = _ignore_duration,
    ) -> None:
        self._changes = changes
        self._clock = clock
        self._pause = pause
        self._timeout_ms = timeout_ms
        self._lock_timeout_ms = lock_timeout_ms
        self._took = took

    def wait(self, published: Seq, on_holders: Callable[[tuple[Holder, ...], int], None]) -> tuple[Holder, ...]:
        """Waits until no transaction that planned below the publication can commit, or until the timeout; returns the
        remaining holders. `on_holders` is called when they change, with the maximum time left in milliseconds."""
        begun_us = self._clock.steady_us()
        try:
            return self._wait(published, begun_us, on_holders)
        finally:
            self._took(self._clock.steady_us() - begun_us)

    def _wait(
        self, published: Seq, begun_us: int, on_holders: Callable[[tuple[Holder, ...], int], None]
    ) -> tuple[Holder, ...]:
        pause_s = _PAUSE_S_MIN
        reported: tuple[Holder, ...] = ()
        while holders := self._changes.holders(published):
            waited_ms = (self._clock.steady_us() - begun_us) // _MS
            if waited_ms >= self._timeout_ms:
                break
            if self._lock_timeout_ms and waited_ms >= self._lock_timeout_ms:
                raise errors.LockNotAvailable(
                    detail=f"lock_timeout expired while waiting for older transactions: {describe(holders)}"
                )
            # Most holders end before it would be useful to report them.
            if holders != reported and pause_s == _PAUSE_S_MAX:
                on_holders(holders, min(self._timeout_ms, self._lock_timeout_ms or self._timeout_ms) - waited_ms)
                reported = holders
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
        return holders


def describe_wait(holders: tuple[Holder, ...], until_us: int) -> str:
    return f"{describe(holders)}, until {show_moment(until_us)} at most"


def show_moment(wall_us: int) -> str:
    return f"{dt.datetime.fromtimestamp(wall_us / 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def describe(holders: tuple[Holder, ...]) -> str:
    return ", ".join(map(str, holders))
