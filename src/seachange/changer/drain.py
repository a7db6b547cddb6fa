"""The drain: before older writers are shut out, they are given a time to end.

**Invariant:** a courtesy. What makes a step safe is the raise that follows it; a drain that ends early, for whatever
reason, costs those who are late a second look at their rows, and nobody a row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from seachange import errors
from seachange.changer.ports import Changes, Holder
from seachange.model.ids import Seq
from seachange.runtime.clock import Clock

DRAIN_TIMEOUT_MS = 5_000
# How often the marks are looked at: soon at first, then in this rhythm.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.002, 0.05
_MS = 1_000


def _nobody_measures(took_us: int) -> None:
    pass


class Drain:
    """`pause` waits for some seconds, or raises if the work is to end; `lock_timeout_ms` 0 stands for none. `took` is
    told how many microseconds a wait took."""

    def __init__(
        self,
        changes: Changes,
        clock: Clock,
        pause: Callable[[float], None],
        timeout_ms: int = DRAIN_TIMEOUT_MS,
        lock_timeout_ms: int = 0,
        took: Callable[[int], None] = _nobody_measures,
    ) -> None:
        self._changes = changes
        self._clock = clock
        self._pause = pause
        self._timeout_ms = timeout_ms
        self._lock_timeout_ms = lock_timeout_ms
        self._took = took

    def wait(self, published: Seq, tell: Callable[[tuple[Holder, ...], int], None]) -> tuple[Holder, ...]:
        """Until nobody can commit who planned below a publication, or the time is over; gives who is left. Whoever is
        waited for is told when it changes, with how many milliseconds it may take at most."""
        begun_us = self._clock.steady_us()
        try:
            return self._wait(published, begun_us, tell)
        finally:
            self._took(self._clock.steady_us() - begun_us)

    def _wait(
        self, published: Seq, begun_us: int, tell: Callable[[tuple[Holder, ...], int], None]
    ) -> tuple[Holder, ...]:
        pause_s = _PAUSE_S_MIN
        told: tuple[Holder, ...] = ()
        while holders := self._changes.holders(published):
            waited_ms = (self._clock.steady_us() - begun_us) // _MS
            if waited_ms >= self._timeout_ms:
                break
            if self._lock_timeout_ms and waited_ms >= self._lock_timeout_ms:
                raise errors.LockNotAvailable(
                    detail=f"lock_timeout has passed while older transactions were waited for: {describe(holders)}"
                )
            # Most are gone before anybody could read of them.
            if holders != told and pause_s == _PAUSE_S_MAX:
                tell(holders, min(self._timeout_ms, self._lock_timeout_ms or self._timeout_ms) - waited_ms)
                told = holders
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
        return holders


def describe_wait(holders: tuple[Holder, ...], until_us: int) -> str:
    return f"{describe(holders)}, until {show_moment(until_us)} at most"


def show_moment(wall_us: int) -> str:
    return f"{dt.datetime.fromtimestamp(wall_us / 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def describe(holders: tuple[Holder, ...]) -> str:
    return ", ".join(map(str, holders))
