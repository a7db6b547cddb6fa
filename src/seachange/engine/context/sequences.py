"""The values of sequences that a node has taken from the catalog, and what a session has drawn.

**Invariant:** values are taken by a transaction of the catalog's own before any session sees them, and never put back
once one has: so none is given twice, even after a rollback or crash. What a node took in advance (CACHE) and no session
has seen is put back when the node closes, if no other has taken any since.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import DescriptorId
from seachange.model.schema.objects import Sequence
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState


@dataclass(slots=True)
class _Held:
    """Values taken under one version of a sequence; `following` is the first that no session has seen."""

    version: int
    block: SequenceBlock
    following: int
    left: int

    def take(self, count: int) -> range:
        taken = min(count, self.left)
        step = self.block.increment
        found = range(self.following, self.following + taken * step, step)
        self.following += taken * step
        self.left -= taken
        return found

    @property
    def unseen_from(self) -> SequenceState:
        """The state in which the catalog gives the same values again."""
        return SequenceState(self.following, called=False)


class NodeSequences:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._held: dict[tuple[DescriptorId, int], _Held] = {}

    def take(self, sequence: Sequence, count: int) -> list[int]:
        """The next values, in order."""
        key = (sequence.id, sequence.run)
        found: list[int] = []
        with self._lock:
            while len(found) < count:
                held = self._held.get(key)
                if held is None or not held.left or held.version != sequence.version:
                    wanted = max(count - len(found), sequence.cache)
                    block = self._catalog.draw_sequence(*key, limits_of(sequence), wanted)
                    held = self._held[key] = _Held(sequence.version, block, block.first, block.count)
                found += held.take(count - len(found))
        return found

    def set(self, sequence: Sequence, value: int, called: bool) -> None:
        if not sequence.minimum <= value <= sequence.maximum:
            raise errors.SequenceOutOfBounds(
                name=sequence.name, value=value, minimum=sequence.minimum, maximum=sequence.maximum
            )
        with self._lock:
            self._held.pop((sequence.id, sequence.run), None)
            self._catalog.set_sequence(sequence.id, sequence.run, SequenceState(value, called))

    def state(self, sequence: Sequence) -> SequenceState:
        with self._lock:
            found = self._catalog.sequence_state(sequence.id, sequence.run)
        return found if found is not None else SequenceState(limits_of(sequence).start, called=False)

    def give_back(self) -> None:
        """Best effort: what is not put back is a gap."""
        with self._lock, suppress(errors.Error):
            for (id_, run), held in self._held.items():
                if held.left:
                    expected = SequenceState(held.block.last, called=True)
                    self._catalog.move_sequence(id_, run, expected, held.unseen_from)
            self._held.clear()


def limits_of(sequence: Sequence) -> SequenceLimits:
    start = sequence.start if sequence.restart is None else sequence.restart
    bounds = (sequence.increment, sequence.minimum, sequence.maximum, sequence.cycle)
    return SequenceLimits(sequence.name, start, *bounds)


@dataclass(slots=True)
class DrawnValues:
    """What a session has drawn: the last value of each sequence, and of any."""

    by_sequence: dict[DescriptorId, int] = field(default_factory=dict)
    last: DescriptorId | None = None

    def note(self, sequence: Sequence, value: int) -> None:
        self.by_sequence[sequence.id] = value
        self.last = sequence.id

    def current(self, sequence: Sequence) -> int:
        found = self.by_sequence.get(sequence.id)
        if found is None:
            detail = f'currval of sequence "{sequence.name}" is not yet defined in this session'
            raise errors.NotInPrerequisiteState(detail=detail)
        return found
