"""Sequence state and the computation of next values.

>>> limits = SequenceLimits("s", start=1, increment=2, minimum=1, maximum=6, cycle=True)
>>> block, state = take_block(limits, None, 2)
>>> list(block.values()), state
([1, 3], SequenceState(last=3, called=True))
>>> block, state = take_block(limits, state, 10)
>>> list(block.values())
[5]
>>> list(take_block(limits, state, 1)[0].values())
[1]
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors


@dataclass(frozen=True, slots=True)
class SequenceLimits:
    name: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool

    @property
    def lowest(self) -> int:
        """Where it starts again: the lowest value, or the highest if it is descending."""
        return self.minimum if self.increment > 0 else self.maximum

    @property
    def period(self) -> int:
        """The number of values from there on."""
        return (self.maximum - self.minimum) // abs(self.increment) + 1


@dataclass(frozen=True, slots=True)
class SequenceState:
    """As in PostgreSQL: the next value is `last` itself unless it was already returned (`called`)."""

    last: int
    called: bool


@dataclass(frozen=True, slots=True)
class SequenceBlock:
    """`count` values, from the first, each by `increment` after the one before."""

    first: int
    count: int
    increment: int

    def values(self) -> range:
        return range(self.first, self.first + self.count * self.increment, self.increment)

    @property
    def last(self) -> int:
        return self.first + (self.count - 1) * self.increment


def take_block(limits: SequenceLimits, state: SequenceState | None, count: int) -> tuple[SequenceBlock, SequenceState]:
    """Up to `count` values, at least one, and the state after them. A block ends where the sequence starts over."""
    first = _following(limits, state)
    bound = limits.maximum if limits.increment > 0 else limits.minimum
    left = (bound - first) // limits.increment + 1
    block = SequenceBlock(first, min(count, left), limits.increment)
    return block, SequenceState(block.last, called=True)


def _following(limits: SequenceLimits, state: SequenceState | None) -> int:
    if state is None:
        return limits.start
    if not state.called:
        return state.last
    following = state.last + limits.increment
    if limits.increment > 0 and following > limits.maximum:
        if not limits.cycle:
            raise errors.SequenceExhausted(name=limits.name, end="maximum", value=limits.maximum)
        return limits.minimum
    if limits.increment < 0 and following < limits.minimum:
        if not limits.cycle:
            raise errors.SequenceExhausted(name=limits.name, end="minimum", value=limits.minimum)
        return limits.maximum
    return following
