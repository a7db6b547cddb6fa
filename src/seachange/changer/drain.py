"""The drain: before writers with older versions are fenced, they get some time to finish.

**Invariant:** a drain is an optimisation. The raise that follows makes the step safe; a drain that ends early, for
whatever reason, makes late writers check their rows again, and loses no row.

**Invariant:** a drain is never part of a deadlock, and has no victim: it does not wait for a transaction that waits,
directly or not, for this change, for another one, or for the right to make one. After a moment it no longer waits for
transactions that have not used what is changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from seachange import errors
from seachange.changer.ports import Changes, Holder
from seachange.model.ids import DescriptorId, Seq
from seachange.runtime.clock import Clock

DRAIN_TIMEOUT_MS = 5_000
# Pauses between polls of the marks: growing from the first to the second.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.002, 0.05
_MS = 1_000
# For this time all older transactions are waited for: a statement under way may be about to use what is changed.
_ANY_MS = 100


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

    def wait(
        self,
        published: Seq,
        raised: Iterable[DescriptorId],
        on_holders: Callable[[tuple[Holder, ...], int], None],
    ) -> tuple[Holder, ...]:
        """Waits until no transaction that used an older version of these descriptors can commit, or until the timeout;
        returns the remaining holders. `on_holders` is called when they change, with the maximum time left in
        milliseconds."""
        begun_us = self._clock.steady_us()
        try:
            with ExitStack() as shown:
                return self._wait(published, tuple(raised), begun_us, on_holders, shown)
        finally:
            self._took(self._clock.steady_us() - begun_us)

    def _wait(
        self,
        published: Seq,
        raised: tuple[DescriptorId, ...],
        begun_us: int,
        on_holders: Callable[[tuple[Holder, ...], int], None],
        shown: ExitStack,
    ) -> tuple[Holder, ...]:
        pause_s = _PAUSE_S_MIN
        reported: tuple[Holder, ...] = ()
        while True:
            waited_ms = (self._clock.steady_us() - begun_us) // _MS
            is_late = bool(self._lock_timeout_ms) and waited_ms >= self._lock_timeout_ms
            holders = self._changes.holders(published, raised if is_late or waited_ms >= _ANY_MS else None)
            if not holders or waited_ms >= self._timeout_ms:
                return holders
            if is_late:
                raise errors.LockNotAvailable(
                    detail=f"lock_timeout expired while waiting for older transactions: {describe(holders)}"
                )
            # Most holders end before it would be useful to report them.
            if holders != reported and waited_ms >= _ANY_MS:
                if not reported:
                    shown.enter_context(self._changes.waiting_for_writers())
                on_holders(holders, min(self._timeout_ms, self._lock_timeout_ms or self._timeout_ms) - waited_ms)
                reported = holders
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)


def describe_wait(holders: tuple[Holder, ...], until_us: int) -> str:
    return f"{describe(holders)}, until {show_moment(until_us)} at most"


def show_moment(wall_us: int) -> str:
    return f"{dt.datetime.fromtimestamp(wall_us / 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def describe(holders: tuple[Holder, ...]) -> str:
    return ", ".join(map(str, holders))
