"""The strengths of row locks, as PostgreSQL has them, and which of them exclude each other."""

from __future__ import annotations

from enum import Enum, IntEnum


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


class LockPolicy(Enum):
    """What to do about a row that another transaction has locked."""

    WAIT = "wait"
    NOWAIT = "nowait"
    SKIP = "skip"
