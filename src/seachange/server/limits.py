"""The limits of a client, from the settings of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seachange import errors
from seachange.engine.session.session_state import TransactionStatus
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms, parse_size


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
