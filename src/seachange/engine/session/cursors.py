"""The open cursors of a session: results that are fetched in parts, forth and back.

A portal of the protocol that has a name is one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seachange import errors
from seachange.model.statements import CursorWay
from seachange.sql.port.result import Result, ResultColumn, Row
from seachange.storage.spill_file import Spool


@dataclass(slots=True)
class OpenCursor:
    """The rows of a query as of its DECLARE. `position` is the number of the row that it stands on, from 1: 0 is before
    the first, and one more than there are behind the last."""

    result: Result
    scrolls: bool = True
    # Whether it stays open when its transaction is committed.
    is_held: bool = False
    position: int = 0

    def fetch(self, way: CursorWay, count: int | None) -> Result:
        found = self._move(way, count)
        return Result(f"FETCH {len(found)}", self.result.columns, found, len(found))

    def take(self, count: int) -> Sequence[Row]:
        """The next ones, as a portal gives them; 0 are all."""
        return self._forward(count or None)

    @property
    def has_more(self) -> bool:
        return self.position < len(self.result.rows)

    def _move(self, way: CursorWay, count: int | None) -> Sequence[Row]:
        match way:
            case CursorWay.ABSOLUTE:
                wanted = count or 0
                return self._stand_on(wanted if wanted >= 0 else len(self.result.rows) + 1 + wanted)
            case CursorWay.RELATIVE:
                return self._stand_on(self.position + (count or 0))
            case CursorWay.BACKWARD:
                return self._forward(-count) if count is not None and count < 0 else self._backward(count)
            case CursorWay.FORWARD:
                return self._backward(-count) if count is not None and count < 0 else self._forward(count)

    def _forward(self, count: int | None) -> Sequence[Row]:
        rows, start = self.result.rows, self.position
        if count == 0:
            # The row that the cursor stands on, once more.
            return rows[start - 1 : start] if start else ()
        self.position = min(start + count, len(rows) + 1) if count is not None else len(rows) + 1
        return rows[start : self.position]

    def _backward(self, count: int | None) -> Sequence[Row]:
        if count == 0:
            return self._forward(0)
        self._check_scrolls()
        rows, start = self.result.rows, self.position
        self.position = max(start - count, 0) if count is not None else 0
        first = max(self.position - 1, 0)
        return rows[first : max(start - 1, 0)][::-1]

    def _stand_on(self, position: int) -> Sequence[Row]:
        if position < self.position:
            self._check_scrolls()
        self.position = min(max(position, 0), len(self.result.rows) + 1)
        return self._forward(0)

    def _check_scrolls(self) -> None:
        if not self.scrolls:
            raise errors.CursorScansForward()


class CursorRows:
    """Who takes the rows of a query that are fetched later."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.is_begun = False

    def begin(self, columns: tuple[ResultColumn, ...]) -> None:
        self.is_begun = True

    def take(self, rows: Sequence[Row]) -> None:
        self._spool.add(rows)

    def fill(self, result: Result) -> Result:
        """The result with its rows, wherever they are."""
        return replace(result, rows=self._spool.rows()) if self.is_begun else result


class OpenCursors:
    """The cursors of the open transaction, which end with it; and those that are held beyond."""

    def __init__(self) -> None:
        self._by_name: dict[str, OpenCursor] = {}
        # Held ones of transactions that are committed.
        self._kept: frozenset[str] = frozenset()

    def check_free(self, name: str) -> None:
        if name in self._by_name:
            raise errors.DuplicateCursor(name=name)

    def open(self, name: str, cursor: OpenCursor) -> None:
        self.check_free(name)
        self._by_name[name] = cursor

    def find(self, name: str) -> OpenCursor | None:
        return self._by_name.get(name)

    def get(self, name: str) -> OpenCursor:
        if name not in self._by_name:
            raise errors.UndefinedCursor(name=name)
        return self._by_name[name]

    def close(self, name: str | None) -> None:
        """None closes all."""
        if name is None:
            self._by_name.clear()
        else:
            self.get(name)
            del self._by_name[name]

    def end(self, committed: bool) -> None:
        """The transaction has ended."""
        if not self._by_name and not self._kept:
            return
        self._by_name = {
            name: cursor
            for name, cursor in self._by_name.items()
            if cursor.is_held and (committed or name in self._kept)
        }
        self._kept = frozenset(self._by_name)

    def mark(self) -> dict[str, OpenCursor]:
        return dict(self._by_name)

    def restore(self, mark: dict[str, OpenCursor]) -> None:
        """Those opened since are closed; those closed since stay so."""
        self._by_name = {name: cursor for name, cursor in self._by_name.items() if mark.get(name) is cursor}
