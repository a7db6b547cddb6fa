"""The values that were drawn for the rows of a statement: from sequences, and by volatile defaults.

**Invariant:** a statement of a block that is run again is given the values that it was given first: its client may have
seen them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seachange.model.descriptor import Column

Drawn = dict[tuple[int, str, str], list[Any]]


class Tape:
    def __init__(self) -> None:
        self._given: Drawn = {}
        self._drawn: Drawn = {}

    def load(self, given: Drawn) -> None:
        """For the next statement: what it is given before anything else is drawn."""
        self._given, self._drawn = given, {}

    def rewind(self) -> None:
        """The statement under way begins, or begins once more."""
        self._drawn = {}

    def draw(self, column: Column, count: int, make: Callable[[int], list[Any]]) -> list[Any]:
        key = (column.id, column.name, str(column.type))
        drawn = self._drawn.setdefault(key, [])
        given = self._given.get(key, [])[len(drawn) : len(drawn) + count]
        values = [*given, *(make(count - len(given)) if len(given) < count else ())]
        drawn += values
        return values

    def drawn(self) -> Drawn:
        return self._drawn
