"""Lock modes: the strengths of row locks and the modes of table locks, as in PostgreSQL, waits for jobs and drains,
their conflicts, and the values that describe holders and waiters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from seachange.model.ids import Epoch, KeyHash, Seq, TableId


class LockStrength(IntEnum):
    """In order: each conflicts with everything that a weaker one conflicts with."""

    KEY_SHARE = 1
    SHARE = 2
    NO_KEY_UPDATE = 3
    UPDATE = 4


class TableLock(IntEnum):
    """The modes of table locks. Their numbers are distinct from those of row locks, since catalogs store both in one
    column."""

    ACCESS_SHARE = 11
    ROW_SHARE = 12
    ROW_EXCLUSIVE = 13
    SHARE_UPDATE_EXCLUSIVE = 14
    SHARE = 15
    SHARE_ROW_EXCLUSIVE = 16
    EXCLUSIVE = 17
    ACCESS_EXCLUSIVE = 18

    @property
    def sql_name(self) -> str:
        """As LOCK TABLE spells it."""
        return self.name.replace("_", " ")

    @property
    def shown_name(self) -> str:
        """As pg_locks and messages spell it."""
        return f"{self.name.title().replace('_', '')}Lock"


class QueueMode(IntEnum):
    """Waits for something other than a lock, and what they wait for, entered like locks: `JOB` waits for a job to end,
    which a session that begins it `RUNS`; `DRAIN` waits for older transactions to end."""

    JOB = 5
    DRAIN = 6
    RUNS = 7

    @property
    def shown_name(self) -> str:
        return f"{self.name.title()}Lock"


LockMode = LockStrength | QueueMode | TableLock

# The conflicts of table locks, as PostgreSQL documents them: the columns are the same modes in the same order.
_TABLE_CONFLICTS: Final = """
    ACCESS_SHARE           .......x
    ROW_SHARE              ......xx
    ROW_EXCLUSIVE          ....xxxx
    SHARE_UPDATE_EXCLUSIVE ...xxxxx
    SHARE                  ..xx.xxx
    SHARE_ROW_EXCLUSIVE    ..xxxxxx
    EXCLUSIVE              .xxxxxxx
    ACCESS_EXCLUSIVE       xxxxxxxx
"""
# A key has locks of one kind only, of a row, of a job or of a table.
CONFLICTS: dict[LockMode, frozenset[LockMode]] = {
    LockStrength.KEY_SHARE: frozenset({LockStrength.UPDATE}),
    LockStrength.SHARE: frozenset({LockStrength.NO_KEY_UPDATE, LockStrength.UPDATE}),
    LockStrength.NO_KEY_UPDATE: frozenset({LockStrength.SHARE, LockStrength.NO_KEY_UPDATE, LockStrength.UPDATE}),
    LockStrength.UPDATE: frozenset(LockStrength),
    # These refuse nothing: they only say who waits for whom.
    QueueMode.JOB: frozenset(),
    QueueMode.DRAIN: frozenset(),
    QueueMode.RUNS: frozenset(),
    **{
        mode: frozenset(other for other, mark in zip(TableLock, line.split()[1], strict=True) if mark == "x")
        for mode, line in zip(TableLock, _TABLE_CONFLICTS.strip().splitlines(), strict=True)
    },
}
# The modes in which others hold a key that a wait in some mode waits for.
WAITED_FOR: dict[LockMode, frozenset[LockMode]] = {**CONFLICTS, QueueMode.JOB: frozenset({QueueMode.RUNS})}
# The modes that statements take implicitly; each conflicts with everything that the one before conflicts with.
WEAK_TABLE_LOCKS = (TableLock.ACCESS_SHARE, TableLock.ROW_SHARE, TableLock.ROW_EXCLUSIVE)
# The modes that conflict with one of those: a node that receives such a request reports its open transactions that
# conflict with it.
STRONG_TABLE_LOCKS = frozenset(mode for mode in TableLock if not CONFLICTS[mode].isdisjoint(WEAK_TABLE_LOCKS)) - {
    *WEAK_TABLE_LOCKS
}


def conflict_mask(mode: LockMode) -> int:
    """The conflicting modes as a bit mask, for catalogs."""
    return sum(1 << other for other in CONFLICTS[mode])


_MODES: dict[int, LockMode] = {mode.value: mode for mode in CONFLICTS}


def lock_mode(number: int) -> LockMode:
    return _MODES[number]


class LockPolicy(Enum):
    """What to do about a row that another transaction has locked."""

    WAIT = "wait"
    NOWAIT = "nowait"
    SKIP = "skip"


class LockOwner(NamedTuple):
    """The holder of a lock within a node: `actor` is the waiting party, which never conflicts with itself (a session),
    `scope` is what the lock ends with (a transaction, or the session)."""

    actor: int
    scope: int


# Of waits for something other than a lock, which hold nothing.
NO_SCOPE = 0


@dataclass(frozen=True, slots=True)
class LockWish:
    """A request for a lock between nodes. `guard` is the hash that others must not write: the key's own, or that of the
    key columns alone where other columns may change. For a table lock it is the id of a table that others must not
    write to, or `NO_GUARD`."""

    key: KeyHash
    strength: LockMode
    guard: KeyHash


NO_GUARD = KeyHash(0)


@dataclass(frozen=True, slots=True)
class LocksTaken:
    """Which of the requests were granted, in order, as far as they were checked; `head` is the log's head at that time:
    a later commit that writes a granted key conflicts with the lock."""

    head: Seq
    granted: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class LockHeld:
    key: KeyHash
    epoch: Epoch
    actor: int
    strength: LockMode


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits for one key are served in the order of `turn`."""

    turn: int
    key: KeyHash
    epoch: Epoch
    actor: int
    strength: LockMode


@dataclass(frozen=True, slots=True)
class LockQueues:
    """All waits between nodes, and the holders that they wait for."""

    held: tuple[LockHeld, ...]
    waits: tuple[LockWait, ...]


@dataclass(frozen=True, slots=True)
class CatalogTableLocks:
    """The table locks of a catalog, held and waited for; `requests` is the number of the newest request for a strong
    one."""

    requests: int
    held: tuple[LockHeld, ...]
    waits: tuple[LockWait, ...]


@dataclass(frozen=True, slots=True)
class ShownLock:
    """A table lock as pg_locks shows it. `fastpath`: known only to its node."""

    table_id: TableId
    epoch: Epoch
    actor: int
    mode: TableLock
    granted: bool
    fastpath: bool = False


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
