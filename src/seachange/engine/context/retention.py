"""How long a node keeps history and what was dropped: what its sessions say, or else its database."""

from __future__ import annotations

import threading
import weakref

from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms

NAME = "seachange.retention"


class Retention:
    """Of sessions that differ, the one that keeps most decides: what is collected cannot be brought back."""

    def __init__(self, default_us: int) -> None:
        self.default_us = default_us
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[SessionSettings] = weakref.WeakSet()

    def listen(self, settings: SessionSettings) -> None:
        with self._lock:
            self._sessions.add(settings)

    def leave(self, settings: SessionSettings) -> None:
        with self._lock:
            self._sessions.discard(settings)

    @property
    def us(self) -> int:
        with self._lock:
            said = [settings.get(NAME) for settings in self._sessions if settings.has_set(NAME)]
        return max((1_000 * parse_duration_ms(text) for text in said), default=self.default_us)
