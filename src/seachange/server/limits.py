"""The limits of a client: those of the settings, and the rate at which an address may try passwords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seachange import errors
from seachange.engine.session.session_state import TransactionStatus
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms, parse_size

# This many failures are allowed without delay, and are forgotten after this time.
FREE_FAILURES = 5
MEMORY_US = 60_000_000
# The delay of the answer to a wrong password, to slow down guessing.
REFUSAL_SECONDS = 0.2
# The interval between attempts of an address with more failures.
SPACING_US = 500_000
# Above this number of addresses, the oldest failures are forgotten.
_ADDRESSES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    connections_max: int
    # The maximum number of prepared statements, and of portals, of one connection.
    statements_max: int
    message_bytes_max: int
    login_ms: int
    # How long a statement may continue after it was cancelled; 0 means no limit.
    stop_ms: int


def read_limits(defaults: Mapping[str, str], connections_max: int | None = None) -> Limits:
    """`connections_max` None: the setting of the database."""
    settings = SessionSettings(defaults)
    return Limits(
        connections_max=connections_max or int(settings.get("max_connections")),
        statements_max=int(settings.get("seachange.max_prepared_statements")),
        message_bytes_max=parse_size(settings.get("seachange.max_message_size")),
        login_ms=parse_duration_ms(settings.get("authentication_timeout")),
        stop_ms=parse_duration_ms(settings.get("seachange.cancel_grace")),
    )


def find_patience_ms(settings: SessionSettings, status: TransactionStatus) -> int:
    """The idle timeout that applies; 0 means none."""
    limits = settings.typed
    return limits.idle_timeout_ms if status is TransactionStatus.IDLE else limits.idle_in_transaction_timeout_ms


def silence_error(status: TransactionStatus, patience_ms: int) -> errors.Error:
    kind = errors.IdleSession if status is TransactionStatus.IDLE else errors.IdleInTransaction
    return kind(ms=patience_ms)


@dataclass(slots=True)
class _Record:
    failures_us: list[int] = field(default_factory=list)
    next_us: int = 0


class Throttle:
    """Throttling of password guessing: an address with failed logins may try only at a limited rate. Used by the event
    loop only.

    **Invariant:** a right password is not reported sooner than a wrong one, so a client gains nothing by not waiting
    for the answer; and clients from other addresses are not delayed.
    """

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
