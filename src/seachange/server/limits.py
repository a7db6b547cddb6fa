"""What the server grants to each of its clients, as the settings of the database say."""

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
    # Of statements, and of portals, of one connection.
    statements_max: int
    message_bytes_max: int
    login_ms: int
    # How long a statement may go on after it was asked to end; 0 for ever.
    stop_ms: int


def read_limits(defaults: Mapping[str, str], connections_max: int | None = None) -> Limits:
    """`connections_max` None: as the settings say."""
    settings = SessionSettings(defaults)
    return Limits(
        connections_max=connections_max or int(settings.get("max_connections")),
        statements_max=int(settings.get("seachange.max_prepared_statements")),
        message_bytes_max=parse_size(settings.get("seachange.max_message_size")),
        login_ms=parse_duration_ms(settings.get("authentication_timeout")),
        stop_ms=parse_duration_ms(settings.get("seachange.cancel_grace")),
    )


def find_patience_ms(settings: SessionSettings, status: TransactionStatus) -> int:
    """For how long a client may say nothing; 0 for ever."""
    name = "idle_session_timeout" if status is TransactionStatus.IDLE else "idle_in_transaction_session_timeout"
    return parse_duration_ms(settings.get(name))


def silence_error(status: TransactionStatus, patience_ms: int) -> errors.Error:
    kind = errors.IdleSession if status is TransactionStatus.IDLE else errors.IdleInTransaction
    return kind(ms=patience_ms)
