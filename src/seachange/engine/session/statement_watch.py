"""Statements of a session that have ended: counted by their text, and logged if they took long."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.engine.context.statement_statistics import StatementPlace
from seachange.engine.replica.node_parts import NodeParts
from seachange.sql.port.result import Result
from seachange.sql.run.execute import Prepared
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.text.normalized import normalize, without_passwords

_MS = 1_000


@dataclass(frozen=True, slots=True)
class StatementWatch:
    parts: NodeParts
    number: int
    role: str
    database: str
    settings: SessionSettings

    def note(self, prepared: Prepared, began_us: int, result: Result | None) -> None:
        """`result` is None for a statement that has failed."""
        took_us = self.parts.clock.steady_us() - began_us
        if not prepared.text:
            return
        pattern = prepared.pattern
        text = prepared.text if pattern is None else pattern.text
        place = StatementPlace(self.role, self.database, text, pattern is not None)
        rows = max(result.count, 0) if result is not None else 0
        self.parts.statements.note(place, took_us, rows, result is None)
        limit_ms = self.settings.typed.log_min_duration_ms
        if 0 <= limit_ms * _MS <= took_us and self.parts.log.is_on:
            self._log(prepared.text, took_us, rows, result is None)

    def _log(self, text: str, took_us: int, rows: int, failed: bool) -> None:
        log = self.parts.log
        log.info(
            "slow statement",
            duration_ms=round(took_us / _MS, 3),
            rows=rows,
            failed=failed or None,
            session=self.number,
            role=self.role,
            database=self.database,
            application=self.settings.get("application_name") or None,
            statement=without_passwords(text) if log.shows_literals else normalize(text),
        )
