"""A seeded random source: the same numbers in every process and with every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

_BYTES = 8


class SeededRandom:
    """Numbers derived from a seed.

    >>> one, other = SeededRandom("a", 1), SeededRandom("a", 1)
    >>> [one.below(100) for _ in range(5)] == [other.below(100) for _ in range(5)]
    True
    """

    def __init__(self, *seed: object) -> None:
        self._seed = repr(seed).encode()
        self._drawn = 0

    def below(self, bound: int) -> int:
        """A number in 0 .. bound - 1."""
        self._drawn += 1
        digest = blake2b(self._seed + self._drawn.to_bytes(_BYTES, "big"), digest_size=_BYTES)
        return int.from_bytes(digest.digest(), "big") % bound

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]
