"""The states of the model of blocks, made canonical.

Sequence numbers are replaced by their ranks among the points that are still referenced, so that histories of any length
are finitely many; what no session can read any more is forgotten.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from seachange.verify.model.switches import Switch, Switches

# A row that does not exist.
NOTHING = 0
NOWHERE: frozenset[tuple[int, int]] = frozenset()


class BlockPhase(StrEnum):
    OPEN = "the block is open"
    # Its change was rolled back to a savepoint, its rows are still to be committed.
    PLAIN = "the block has no change any more"
    FAILED = "the block has failed, or is rolled back"
    DEAD = "the owner is gone"
    CLEANED = "the change of a dead owner was reverted"
    OVER = "the block has ended"
    FLAW = "something is wrong"


class OtherSession(NamedTuple):
    """Another session: its snapshot, the version that it was planned with, and whether it has looked at the state of
    the constraint before its commit."""

    snapshot: int
    planned: int
    looked: bool


class Buffered(NamedTuple):
    """A row of the block: the committed value that it replaces, its own, and whether another session has changed the
    row since it was read."""

    old: int
    value: int
    is_overtaken: bool


class OpenBlock(NamedTuple):
    """`rows`: for each row its versions (sequence, value, keys that the commit left). `cells`: what happened to entries
    of the index (sequence, value, row, whether it is there then); `base`: the entries that the backfill has attached.
    `position`: that of the block's statement; `lowest`: min_version; `at`: the sequence that backfill and validation
    read; `recorded`: a violation is on record since then. `savepoint`: the buffer and whether the statement had begun,
    empty once it was used. `start`: the snapshot of the block."""

    rows: tuple[Any, ...]
    cells: tuple[Any, ...]
    base: frozenset[tuple[int, int]] | None
    head: int
    position: int
    version: int
    lowest: int
    at: int | None
    recorded: int
    open: tuple[Any, ...]
    buffer: tuple[Buffered | None, ...]
    savepoint: Any
    phase: BlockPhase
    start: int | None


def read_index(state: OpenBlock, look: int | None) -> frozenset[tuple[int, int]]:
    return _folded(state.base or NOWHERE, state.cells, state.head if look is None else look)


def _folded(base: frozenset[tuple[int, int]], cells: tuple[Any, ...], upto: int) -> frozenset[tuple[int, int]]:
    found = set(base)
    for seq, value, row, is_there in cells:
        if seq <= upto:
            (found.add if is_there else found.discard)((value, row))
    return frozenset(found)


_NEEDS_START = frozenset({Switch.OLD_IMAGE, Switch.VALIDATE_AT_START, Switch.OWN_KEYS_AT_START})


def normal(state: OpenBlock, gone: int, needs_raise: bool, moves: bool, switches: Switches) -> OpenBlock:
    """`gone` is the version after a revert; `needs_raise`: the sequence of the last raise is still to be read."""
    state = _forget_block(state, switches)
    if not needs_raise:
        state = state._replace(at=None)
    if moves and switches.isdisjoint(_NEEDS_START):
        state = state._replace(start=None)
    if state.version == gone and Switch.LATE_COMMIT not in switches:
        # Ids are never reused, so no session reads it again.
        state = state._replace(base=None, cells=())
    state = _forget_read(state, gone, switches)
    return _ranked(state)


def _forget_block(state: OpenBlock, switches: Switches) -> OpenBlock:
    nothing = (None,) * len(state.buffer)
    if state.phase in (BlockPhase.OPEN, BlockPhase.PLAIN) or Switch.LATE_COMMIT in switches:
        return state
    return state._replace(buffer=nothing, savepoint=None, recorded=0, at=None, start=None, position=0)


def _forget_read(state: OpenBlock, gone: int, switches: Switches) -> OpenBlock:
    """What lies below every snapshot: entries become part of the base, keys are not compared any more."""
    snapshots = [transaction.snapshot for transaction in state.open]
    if Switch.INDEX_AT_START in switches and state.start is not None:
        snapshots.append(state.start)
    low = min([state.head, *snapshots])
    if state.base is not None:
        base = _folded(state.base, state.cells, low)
        state = state._replace(base=base, cells=tuple(event for event in state.cells if event[0] > low))
    rows = tuple(
        tuple((seq, value, keys if seq > low and state.version != gone else ()) for seq, value, keys in events)
        for events in state.rows
    )
    return state._replace(rows=rows)


def _ranked(state: OpenBlock) -> OpenBlock:
    named = [state.head, *(t.snapshot for t in state.open), state.at, state.start]
    points = sorted({point for point in named if point is not None})

    def rank(seq: int) -> int:
        return next(number for number, point in enumerate(points) if seq <= point)

    rows = tuple(_squeezed(events, rank) for events in state.rows)
    cells: dict[tuple[int, int, int], int] = {}
    for seq, value, row, is_there in state.cells:
        cells[rank(seq), value, row] = is_there
    return state._replace(
        rows=rows,
        cells=tuple(sorted((seq, value, row, is_there) for (seq, value, row), is_there in cells.items())),
        head=rank(state.head),
        at=None if state.at is None else rank(state.at),
        open=tuple(sorted(t._replace(snapshot=rank(t.snapshot)) for t in state.open)),
        start=None if state.start is None else rank(state.start),
    )


def _squeezed(events: tuple[Any, ...], rank: Any) -> tuple[Any, ...]:
    """Of several commits between two points the last value counts; a key was left if any of them left it."""
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    for seq, value, keys in events:
        number = rank(seq)
        before = found[number][1] if number in found else ()
        found[number] = (value, tuple(sorted({*keys, *before})))
    return tuple((number, *found[number]) for number in sorted(found))
