"""Index entries in the models: how rows become entries, and how entries are read at a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seachange.verify.model.explore import Events, value_at
from seachange.verify.model.shape import ROWS, IndexKind
from seachange.verify.model.switches import Switch, Switches

NONE = -1

# Per entry: its stored content, or NONE.
Content = tuple[int, ...]
# (base, sequence from which on transactions read it, content)
Generation = tuple[int, int, Content]


class Entries:
    """Rows are keys and values; `kinds` says what identifies the entries of each index. In `converted` ones, a row
    whose value is `bad` has no key."""

    def __init__(
        self,
        kinds: Sequence[IndexKind],
        keys: int,
        values: int,
        switches: Switches,
        converted: frozenset[int] = frozenset(),
        bad: int = NONE,
    ) -> None:
        self._kinds, self._keys, self._values, self._switches = kinds, keys, values, switches
        keyless = Switch.KEYLESS_ENTRIES in switches
        # In others NULLs are distinct.
        self._lacking = {n for n in converted if not keyless or kinds[n] is not IndexKind.PRIMARY_BY_VALUE}
        self._bad = bad

    def has_entry(self, number: int, value: int) -> bool:
        return value != NONE and (value != self._bad or number not in self._lacking)

    def size(self, number: int) -> int:
        kind = self._kinds[number]
        if kind is IndexKind.PRIMARY:
            return self._keys
        return self._values if kind is IndexKind.PRIMARY_BY_VALUE else self._values * self._keys

    def entry(self, number: int, key: int, value: int) -> int:
        kind = self._kinds[number]
        if kind is IndexKind.PRIMARY:
            return key
        return value if kind is IndexKind.PRIMARY_BY_VALUE else value * self._keys + key

    def stored(self, number: int, key: int, value: int) -> int:
        kind = self._kinds[number]
        if kind is IndexKind.PRIMARY:
            return value
        return key if kind is IndexKind.PRIMARY_BY_VALUE else 0

    def content(self, number: int, now: Sequence[int]) -> Content:
        content = [NONE] * self.size(number)
        for key, value in enumerate(now):
            if self.has_entry(number, value):
                content[self.entry(number, key, value)] = self.stored(number, key, value)
        return tuple(content)

    def as_rows(self, number: int, content: Content) -> Content:
        if self._kinds[number] is IndexKind.PRIMARY:
            return content
        now = [NONE] * self._keys
        for value, key in enumerate(content):
            if key != NONE:
                now[key] = value
        return tuple(now)

    def rows_of(self, number: int, rows: tuple[Events, ...], cells: Any, generations: Any, snapshot: int) -> Content:
        if number == ROWS:
            return tuple(value_at(events, snapshot, NONE) for events in rows)
        return self.as_rows(number, self.read(cells[number], generations[number], snapshot, by_base=False))

    def read(self, cells: tuple[Events, ...], held: tuple[Generation, ...], snapshot: int, by_base: bool) -> Content:
        """The newest generation for the snapshot, and the deltas above its base. A transaction uses a generation if it
        was swapped in before its snapshot; the pipeline uses any that is old enough."""
        base, content = NONE, None
        for generation in held:
            known_from = generation[0] if by_base else generation[1]
            if known_from <= snapshot:
                base, content = generation[0], generation[2]
        out = list(content) if content is not None else [NONE] * len(cells)
        if Switch.NO_LOWER_BOUND in self._switches:
            base = NONE
        blind = Switch.BLIND_INGEST in self._switches
        for entry, events in enumerate(cells):
            for event in reversed(events):
                if event[0] <= snapshot:
                    if event[0] > base and not (blind and event[1] == NONE and out[entry] != NONE):
                        out[entry] = event[1]
                    break
        return tuple(out)
