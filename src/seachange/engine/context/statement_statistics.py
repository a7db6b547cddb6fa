"""What the sessions of a node have run: calls, time and rows of each statement, without its constants.

**Invariant:** a bounded number of statements is kept, and noting one takes no more than about a microsecond unless its
text is new.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace
from typing import NamedTuple

from seachange.sql.text.normalized import normalize

_STATEMENTS_MAX = 2_000
# The share of statements that is forgotten when there are too many: those with the least time.
_FORGOTTEN = 0.1
# Texts by which a statement is found without normalizing it, and the length of those that are kept.
_TEXTS_MAX = 5_000
_TEXT_CHARS_MAX = 2_000
_PARAMETER = re.compile(r"\$[0-9]+")


class StatementPlace(NamedTuple):
    """`is_pattern`: the parameters in the text are constants that were taken out of it."""

    role: str
    database: str
    text: str
    is_pattern: bool


@dataclass(slots=True)
class StatementTotals:
    """Times are microseconds."""

    role: str
    database: str
    statement: str
    calls: int = 0
    failures: int = 0
    total_us: int = 0
    longest_us: int = 0
    rows: int = 0


class StatementStatistics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[tuple[str, str, str], StatementTotals] = {}
        self._by_text: dict[StatementPlace, StatementTotals] = {}

    def note(self, place: StatementPlace, took_us: int, rows: int, failed: bool = False) -> None:
        totals = self._by_text.get(place) or self._find(place)
        with self._lock:
            totals.calls += 1
            totals.failures += failed
            totals.total_us += took_us
            totals.longest_us = max(totals.longest_us, took_us)
            totals.rows += rows

    def _find(self, place: StatementPlace) -> StatementTotals:
        text = place.text
        key = place.role, place.database, normalize(_PARAMETER.sub("?", text) if place.is_pattern else text)
        with self._lock:
            if len(self._totals) >= _STATEMENTS_MAX:
                self._forget_some()
            totals = self._totals.get(key) or self._totals.setdefault(key, StatementTotals(*key))
            if len(text) <= _TEXT_CHARS_MAX:
                if len(self._by_text) >= _TEXTS_MAX:
                    self._by_text.clear()
                self._by_text[place] = totals
        return totals

    def _forget_some(self) -> None:
        kept = sorted(self._totals.items(), key=lambda item: -item[1].total_us)
        self._totals = dict(kept[: int(len(kept) * (1 - _FORGOTTEN))])
        self._by_text.clear()

    def read(self) -> list[StatementTotals]:
        with self._lock:
            return [replace(totals) for totals in self._totals.values()]

    def clear(self) -> None:
        with self._lock:
            self._totals.clear()
            self._by_text.clear()
