"""The savepoints of an open transaction, the newest last.

**Invariant:** each remembers what was there when it was set; going back to one forgets those after it. A name may be
given again: it then means the newest, and the older one once that is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.session.cursors import OpenCursor
from seachange.sql.settings.session_settings import SettingsMark


@dataclass(frozen=True, slots=True)
class Point:
    """`mark` is the transaction's own; the settings and the mode are the session's."""

    name: str
    mark: Any
    settings: SettingsMark
    read_only: bool
    cursors: dict[str, OpenCursor]


class Savepoints:
    def __init__(self) -> None:
        self._points: list[Point] = []

    def __bool__(self) -> bool:
        return bool(self._points)

    def push(self, point: Point) -> None:
        self._points.append(point)

    def release(self, name: str) -> None:
        """Forgets the savepoint and all after it; what was done since stays."""
        del self._points[self._find(name) :]

    def back_to(self, name: str) -> Point:
        """Forgets all after the savepoint."""
        position = self._find(name)
        del self._points[position + 1 :]
        return self._points[position]

    def clear(self) -> None:
        self._points.clear()

    def _find(self, name: str) -> int:
        for position in reversed(range(len(self._points))):
            if self._points[position].name == name:
                return position
        raise errors.InvalidSavepoint(name=name)
