"""Throttling of password guessing: an address with failed logins may try only at a limited rate.

**Invariant:** a right password is not reported sooner than a wrong one, so a client gains nothing by not waiting for
the answer; and clients from other addresses are not delayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# This many failures are allowed without delay, and are forgotten after this time.
FREE_FAILURES = 5
MEMORY_US = 60_000_000
# The interval between attempts of an address with more failures.
SPACING_US = 500_000
# Above this number of addresses, the oldest failures are forgotten.
_ADDRESSES_MAX = 10_000


@dataclass(slots=True)
class _Record:
    failures_us: list[int] = field(default_factory=list)
    next_us: int = 0


class Throttle:
    """Used by the event loop only."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Record] = {}

    def admit(self, address: str, now_us: int, wait_us_max: int) -> int | None:
        """The delay in microseconds until an attempt may begin; None if it would exceed the maximum."""
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
        # The most recent failure is last.
        self._by_address[address] = record
        if len(self._by_address) > _ADDRESSES_MAX:
            del self._by_address[next(iter(self._by_address))]
