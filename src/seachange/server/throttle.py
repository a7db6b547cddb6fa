"""Slows down guessing: an address from which wrong passwords came may try so often, and no more often.

**Invariant:** whether a password is right is not told sooner than that it is wrong, so nothing is gained by not waiting
for the answer; and whoever comes from elsewhere waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# So many mistakes are anybody's, and are forgotten after this time.
FREE_FAILURES = 5
MEMORY_US = 60_000_000
# The time between two tries of an address that has made more.
SPACING_US = 500_000
# With more addresses than this, the oldest failures are forgotten.
_ADDRESSES_MAX = 10_000


@dataclass(slots=True)
class _Record:
    failures_us: list[int] = field(default_factory=list)
    next_us: int = 0


class Throttle:
    """Used by the loop alone."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Record] = {}

    def admit(self, address: str, now_us: int, wait_us_max: int) -> int | None:
        """In how many microseconds a try may begin; None: it would be too long, and it may not."""
        record = self._by_address.get(address)
        if record is None:
            return 0
        record.failures_us = [at for at in record.failures_us if at > now_us - MEMORY_US]
        if not record.failures_us:
            del self._by_address[address]
            return 0
        if len(record.failures_us) < FREE_FAILURES:
            return 0
        begins_us = max(now_us, record.next_us)
        if begins_us - now_us > wait_us_max:
            return None
        record.next_us = begins_us + SPACING_US
        return begins_us - now_us

    def note_failure(self, address: str, now_us: int) -> None:
        record = self._by_address.pop(address, None) or _Record()
        record.failures_us = [*record.failures_us[-FREE_FAILURES:], now_us]
        # The one that failed last comes last.
        self._by_address[address] = record
        if len(self._by_address) > _ADDRESSES_MAX:
            del self._by_address[next(iter(self._by_address))]
