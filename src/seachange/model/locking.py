"""Locks as values: the strengths of row locks, as PostgreSQL has them, and which of them exclude each other; who holds
and who waits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from seachange.model.ids import Epoch, KeyHash, Seq


class LockStrength(IntEnum):
    """In order: each excludes all that a weaker one does."""

    KEY_SHARE = 1
    SHARE = 2
    NO_KEY_UPDATE = 3
    UPDATE = 4


CONFLICTS: dict[LockStrength, frozenset[LockStrength]] = {
    LockStrength.KEY_SHARE: frozenset({LockStrength.UPDATE}),
    LockStrength.SHARE: frozenset({LockStrength.NO_KEY_UPDATE, LockStrength.UPDATE}),
    LockStrength.NO_KEY_UPDATE: frozenset({LockStrength.SHARE, LockStrength.NO_KEY_UPDATE, LockStrength.UPDATE}),
    LockStrength.UPDATE: frozenset(LockStrength),
}
# The same as a sum, for catalogs: strengths that add up to so much exclude each other.
CONFLICT_SUM = 5


class LockPolicy(Enum):
    """What to do about a row that another transaction has locked."""

    WAIT = "wait"
    NOWAIT = "nowait"
    SKIP = "skip"


class LockOwner(NamedTuple):
    """Who holds a lock within a node: `actor` is whoever waits and never excludes itself (a session), `scope` what
    the lock ends with (a transaction, or the session itself)."""

    actor: int
    scope: int


@dataclass(frozen=True, slots=True)
class LockWish:
    """A lock between nodes. `guard` is the hash whose writing by others it stands against: the key's own, or that of
    the key alone where other columns may change."""

    key: KeyHash
    strength: LockStrength
    guard: KeyHash


@dataclass(frozen=True, slots=True)
class LocksTaken:
    """Which of the wishes were granted, in order, as far as they were looked at; `head` is the log's at that moment:
    a later commit that writes a granted key meets the lock."""

    head: Seq
    granted: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class LockHeld:
    key: KeyHash
    epoch: Epoch
    actor: int
    strength: LockStrength


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits for one key are served by their `turn`."""

    turn: int
    key: KeyHash
    epoch: Epoch
    actor: int
    strength: LockStrength


@dataclass(frozen=True, slots=True)
class LockQueues:
    """All waits between nodes, and who holds what they wait for."""

    held: tuple[LockHeld, ...]
    waits: tuple[LockWait, ...]


class AdvisoryVerb(Enum):
    LOCK = "lock"
    TRY = "try"
    UNLOCK = "unlock"
    UNLOCK_ALL = "unlock all"


@dataclass(frozen=True, slots=True)
class AdvisoryCall:
    """What a call of an advisory lock function does."""

    verb: AdvisoryVerb
    strength: LockStrength = LockStrength.UPDATE
    of_session: bool = True
