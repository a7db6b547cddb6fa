"""Time as a port. Safety never depends on it: clocks decide only when an epoch may be ended."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def wall_us(self) -> int:
        """Microseconds since 1970, for people and commit timestamps."""

    def steady_us(self) -> int:
        """Microseconds of a clock that all processes of this machine share and that never goes back."""


class SystemClock:
    def wall_us(self) -> int:
        return time.time_ns() // 1_000

    def steady_us(self) -> int:
        # BOOTTIME goes on while the machine sleeps, so an epoch that slept past its expiry is seen to have done so.
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


SYSTEM_CLOCK = SystemClock()
