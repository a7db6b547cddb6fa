"""What stands around a statement of a session: it can be cancelled, it has limits, and it is counted.

**Invariant:** a statement is guarded once, with all that belongs to it: its commit, its repetitions, and the
statements that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from seachange.engine.client import Client
from seachange.engine.node import Node
from seachange.model.timezone import in_zone
from seachange.sql.duck import DuckSession
from seachange.sql.session_settings import SessionSettings
from seachange.sql.setting_checks import parse_duration_ms, parse_size

T = TypeVar("T")


class Guard:
    def __init__(self, node: Node, client: Client, duck: DuckSession, settings: SessionSettings) -> None:
        self._node = node
        self._client = client
        self._duck = duck
        self._settings = settings
        self._is_entered = False
        # The statement has committed: then it is too late to end it.
        self.is_settled = False

    def interrupt(self) -> None:
        """Ends the running statement; may be called from another thread."""
        # The flag first: whoever begins to wait looks at it.
        self._client.interrupts.set()
        self._duck.interrupt()
        self._node.epoch.locks.cancel(self._client.actor)

    def run(self, work: Callable[[], T], command: str = "") -> T:
        if self._is_entered:
            return work()
        self._is_entered, self.is_settled = True, False
        self._client.interrupts.clear()
        try:
            with self._node.parts.meters.statement(command), self._watched(), self._in_zone():
                return work()
        finally:
            self._is_entered = False
            # What has ended, with all that it wrote, is not kept until the next statement.
            self._duck.ask(dict)

    def _in_zone(self) -> AbstractContextManager[None]:
        zone = self._settings.get("timezone")
        self._duck.set_zone(zone)
        return in_zone(zone)

    def _watched(self) -> AbstractContextManager[None]:
        timeout_ms = parse_duration_ms(self._settings.get("statement_timeout"))
        growth_bytes_max = parse_size(self._settings.get("seachange.process_growth_limit"))
        if not timeout_ms and not growth_bytes_max:
            return nullcontext()
        return self._node.watchdog.watch(self, timeout_ms, growth_bytes_max)
