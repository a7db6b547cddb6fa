"""The clock port. Safety never depends on time: clocks only decide when an epoch may be ended."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def wall_us(self) -> int:
        """Microseconds since 1970, for people and commit timestamps."""

    def steady_us(self) -> int:
        """Microseconds of a monotonic clock that all processes of this machine share."""


class SystemClock:
    def wall_us(self) -> int:
        return time.time_ns() // 1_000

    def steady_us(self) -> int:
        # BOOTTIME advances while the machine sleeps, so that an epoch that slept past its expiry is detected.
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


SYSTEM_CLOCK = SystemClock()
