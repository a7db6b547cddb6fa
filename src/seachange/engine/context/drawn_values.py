"""What a statement was given that does not depend on its snapshot: values of sequences, by calls and by defaults, and
those of volatile defaults.

**Invariant:** a statement of a block that is run again is given the values that it was given first: its client may have
seen them. What changes a sequence is not done a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from seachange.model.schema.descriptor import Column

Drawn = dict[Hashable, list[Any]]


class DrawnTape:
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
        return self.record((column.id, column.name, str(column.type)), count, make)

    def record(self, key: Hashable, count: int, make: Callable[[int], list[Any]]) -> list[Any]:
        """The next values of what `key` stands for: those that the statement was given first, then new ones."""
        drawn = self._drawn.setdefault(key, [])
        given = self._given.get(key, [])[len(drawn) : len(drawn) + count]
        values = [*given, *(make(count - len(given)) if len(given) < count else ())]
        drawn += values
        return values

    def drawn(self) -> Drawn:
        return self._drawn
