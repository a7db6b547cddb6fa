"""The holders and waiters of a lock, as the DETAIL of an error, in PostgreSQL's words.

A session of the same node is shown by its number, which is also what pg_backend_pid() returns; for other nodes the node
is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from seachange.engine.locks.lock_graph import Party
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import LockMode, LockStrength

# Returns the name of the object that a lock is on.
DescribeKey = Callable[[KeyHash], str]

# PostgreSQL's names of the table locks that correspond to these row locks.
_ROW_MODES: dict[LockStrength, str] = {
    LockStrength.KEY_SHARE: "AccessShareLock",
    LockStrength.SHARE: "RowShareLock",
    LockStrength.NO_KEY_UPDATE: "ExclusiveLock",
    LockStrength.UPDATE: "AccessExclusiveLock",
}
_BITS_64 = (1 << 64) - 1


class DescribedWait(NamedTuple):
    """`who` waits for a lock on the key that `blocker` holds."""

    who: str
    mode: LockMode
    key: KeyHash
    blocker: str


def describe_key(key: KeyHash) -> str:
    return f"key {key & _BITS_64:016x}"


def name_party(party: Party, here: Epoch) -> str:
    return str(party.actor) if party.epoch == here else f"{party.actor} of node {party.epoch}"


def mode_name(mode: LockMode) -> str:
    return _ROW_MODES[mode] if isinstance(mode, LockStrength) else mode.shown_name


def describe_cycle(waits: Iterable[DescribedWait], describe: DescribeKey) -> str:
    lines = (
        f"Process {who} waits for {mode_name(mode)} on {describe(key)}; blocked by process {blocker}."
        for who, mode, key, blocker in waits
    )
    return "\n".join(lines)


def describe_holders(holders: Iterable[str], queue: Iterable[str] = ()) -> str:
    held, waiting = sorted(set(holders)), list(dict.fromkeys(queue))
    if not held:
        return f"Wait queue: {', '.join(waiting)}."
    text = f"{'Process' if len(held) == 1 else 'Processes'} holding the lock: {', '.join(held)}."
    return f"{text} Wait queue: {', '.join(waiting)}." if waiting else text
