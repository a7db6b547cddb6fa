"""Locks between nodes, inside one write transaction: a refused request waits in a queue that all nodes see."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from seachange.catalog.rows import held_from, queues_from, wait_from
from seachange.model.ids import Epoch, KeyHash, Seq
from seachange.model.locking import (
    CatalogTableLocks,
    LockOwner,
    LockPolicy,
    LockQueues,
    LocksTaken,
    LockStrength,
    LockWait,
    LockWish,
    TableLock,
    conflict_mask,
)

# Locks of others: all, and one that conflicts with writing a hash.
OTHERS = "SELECT key, guard FROM lock WHERE NOT (epoch = ?1 AND actor = ?2)"
STANDING = "SELECT key, guard FROM lock WHERE guard = ?1 AND NOT (epoch = ?2 AND actor = ?3) LIMIT 1"
# A lock on the table of an index.
ON_TABLE = f"""SELECT key FROM lock WHERE guard = (SELECT descriptor_id FROM index_owner WHERE index_id = ?1)
    AND strength >= {TableLock.ACCESS_SHARE} AND NOT (epoch = ?2 AND actor = ?3) LIMIT 1"""  # noqa: S608
# A lock that conflicts with a commit that has read a hash: on the rows of a table, by a transaction that changes many.
STANDING_READ = f"""SELECT key, NULL FROM lock WHERE guard = ?1 AND strength = {LockStrength.NO_KEY_UPDATE.value}
    AND NOT (epoch = ?2 AND actor = ?3) LIMIT 1"""  # noqa: S608

_HEAD = "SELECT max(seq) FROM log"
# ?2 is the mask of the modes that the request conflicts with.
_OTHER_HOLDER = """SELECT 1 FROM lock WHERE key = ?1 AND (?2 >> strength) & 1
    AND NOT (epoch = ?3 AND actor = ?4) LIMIT 1"""
_OWN_PART = "SELECT 1 FROM lock WHERE key = ?1 AND epoch = ?2 AND actor = ?3 LIMIT 1"
_EARLIER_WAIT = """SELECT 1 FROM lock_wait WHERE key = ?1 AND (?2 >> strength) & 1
    AND NOT (epoch = ?3 AND actor = ?4) AND turn < coalesce((SELECT turn FROM lock_wait
        WHERE epoch = ?3 AND actor = ?4 AND key = ?1), 9223372036854775807) LIMIT 1"""
_GRANT = """INSERT INTO lock VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (key, epoch, actor, scope) DO UPDATE SET strength = excluded.strength, guard = excluded.guard
    WHERE excluded.strength > strength"""
_IS_WAITING = "SELECT 1 FROM lock_wait WHERE epoch = ?1 AND actor = ?2 AND key = ?3 AND strength = ?4"
_WAIT = "INSERT INTO lock_wait (key, epoch, actor, strength) VALUES (?1, ?2, ?3, ?4)"
_SERVE_FIRST = """UPDATE lock_wait SET turn = (SELECT min(turn) FROM lock_wait) - 1
    WHERE turn = ?1 AND epoch = ?2 AND actor = ?3"""
_LEAVE = "DELETE FROM lock_wait WHERE epoch = ?1 AND actor = ?2"
_RELEASE_ALL = "DELETE FROM lock WHERE epoch = ?1 AND actor = ?2 AND scope = ?3"
_RELEASE = f"{_RELEASE_ALL} AND key = ?4"
_WAITS = "SELECT turn, key, epoch, actor, strength FROM lock_wait ORDER BY turn"
_HELD = "SELECT key, epoch, actor, strength FROM lock WHERE key IN (SELECT key FROM lock_wait)"
_REQUEST = "UPDATE sequencer SET lock_requests = lock_requests + 1 RETURNING lock_requests"
_REQUESTS = "SELECT lock_requests FROM sequencer"
_ANSWER = "UPDATE node SET answered = max(answered, ?1) WHERE epoch = ?2"
_TABLE_HELD = f"SELECT key, epoch, actor, strength FROM lock WHERE strength >= {TableLock.ACCESS_SHARE}"  # noqa: S608
_TABLE_WAITS = f"""SELECT turn, key, epoch, actor, strength FROM lock_wait
    WHERE strength >= {TableLock.ACCESS_SHARE} ORDER BY turn"""  # noqa: S608


def take(
    db: sqlite3.Connection, epoch: Epoch, owner: LockOwner, wishes: Sequence[LockWish], policy: LockPolicy, most: int
) -> LocksTaken:
    granted: list[bool] = []
    (head,) = db.execute(_HEAD).fetchone()
    for wish in wishes:
        if sum(granted) >= most:
            break
        granted.append(not _is_blocked(db, epoch, owner, wish))
        if granted[-1]:
            db.execute(_GRANT, (wish.key, epoch, *owner, wish.strength, wish.guard))
        elif policy is LockPolicy.WAIT:
            enter_queue(db, epoch, owner, wish)
            return LocksTaken(Seq(head), tuple(granted))
        elif policy is LockPolicy.NOWAIT:
            break
    db.execute(_LEAVE, (epoch, owner.actor))
    return LocksTaken(Seq(head), tuple(granted))


def _is_blocked(db: sqlite3.Connection, epoch: Epoch, owner: LockOwner, wish: LockWish) -> bool:
    """Blocked by conflicting holders and, unless the actor holds the lock in some mode already, by earlier waiters."""
    mine = (wish.key, conflict_mask(wish.strength), epoch, owner.actor)
    if db.execute(_OTHER_HOLDER, mine).fetchone() is not None:
        return True
    if db.execute(_EARLIER_WAIT, mine).fetchone() is None:
        return False
    return db.execute(_OWN_PART, (wish.key, epoch, owner.actor)).fetchone() is None


def enter_queue(db: sqlite3.Connection, epoch: Epoch, owner: LockOwner, wish: LockWish) -> None:
    if db.execute(_IS_WAITING, (epoch, owner.actor, wish.key, wish.strength)).fetchone() is None:
        db.execute(_LEAVE, (epoch, owner.actor))
        db.execute(_WAIT, (wish.key, epoch, owner.actor, wish.strength))


def release(db: sqlite3.Connection, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None) -> None:
    db.execute(_LEAVE, (epoch, owner.actor))
    if keys is None:
        db.execute(_RELEASE_ALL, (epoch, *owner))
    else:
        db.executemany(_RELEASE, [(epoch, *owner, key) for key in keys])


def release_scopes(db: sqlite3.Connection, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
    db.execute(_LEAVE, (epoch, actor))
    db.executemany(_RELEASE_ALL, [(epoch, actor, scope) for scope in scopes])


def serve_first(db: sqlite3.Connection, wait: LockWait) -> None:
    db.execute(_SERVE_FIRST, (wait.turn, wait.epoch, wait.actor))


def read_queues(db: sqlite3.Connection) -> LockQueues:
    waits = db.execute(_WAITS).fetchall()
    return queues_from(db.execute(_HELD).fetchall() if waits else (), waits)


def request(db: sqlite3.Connection, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
    enter_queue(db, epoch, owner, wish)
    (number,) = db.execute(_REQUEST).fetchone()
    return int(number)


def answer(db: sqlite3.Connection, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]]) -> None:
    db.executemany(_GRANT, [(wish.key, epoch, *owner, wish.strength, wish.guard) for owner, wish in held])
    db.execute(_ANSWER, (upto, epoch))


def read_table_locks(db: sqlite3.Connection) -> CatalogTableLocks:
    (requests,) = db.execute(_REQUESTS).fetchone()
    held, waits = db.execute(_TABLE_HELD).fetchall(), db.execute(_TABLE_WAITS).fetchall()
    return CatalogTableLocks(requests, tuple(map(held_from, held)), tuple(map(wait_from, waits)))
