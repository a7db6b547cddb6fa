"""Locks between nodes: a server-side function takes them, one statement releases them."""

from __future__ import annotations

from collections.abc import Sequence

from seachange import errors
from seachange.catalog.postgres.arrays import Bigints
from seachange.catalog.postgres.connections import Connection
from seachange.catalog.rows import held_from, queues_from, wait_from
from seachange.model.ids import Epoch, KeyHash, Seq
from seachange.model.locking import CatalogTableLocks, LockOwner, LockPolicy, LockQueues, LocksTaken, LockWait, LockWish

_TAKE = "SELECT head, granted FROM seachange.take_locks(%b, %b, %b, %b, %b, %b)"
_POLICIES: dict[LockPolicy, int] = {
    LockPolicy.WAIT: 0,
    LockPolicy.NOWAIT: 1,
    LockPolicy.SKIP: 2,
}
_RELEASE = """WITH left_queue AS (DELETE FROM seachange.lock_wait WHERE epoch = %(epoch)b AND actor = %(actor)b)
    DELETE FROM seachange.lock WHERE epoch = %(epoch)b AND actor = %(actor)b AND scope = %(scope)b
        AND (%(keys)b::bigint[] IS NULL OR key = ANY (%(keys)b))"""
_RELEASE_SCOPES = """WITH left_queue AS (DELETE FROM seachange.lock_wait WHERE epoch = %(epoch)b AND actor = %(actor)b)
    DELETE FROM seachange.lock WHERE epoch = %(epoch)b AND actor = %(actor)b AND scope = ANY (%(scopes)b)"""
_ENTER = """INSERT INTO seachange.lock_wait AS w (key, epoch, actor, strength)
    SELECT %(key)b, %(epoch)b, %(actor)b, %(strength)b WHERE seachange.is_live(%(epoch)b)
    ON CONFLICT (epoch, actor) DO UPDATE SET key = excluded.key, strength = excluded.strength RETURNING turn"""
_SERVE_FIRST = """WITH moved AS (DELETE FROM seachange.lock_wait WHERE turn = %s AND epoch = %s AND actor = %s
        RETURNING key, epoch, actor, strength)
    INSERT INTO seachange.lock_wait (turn, key, epoch, actor, strength) OVERRIDING SYSTEM VALUE
        SELECT (SELECT min(turn) FROM seachange.lock_wait) - 1, moved.* FROM moved"""
# One statement, so that the result is consistent.
_QUEUES = """SELECT turn, key, epoch, actor, strength FROM seachange.lock_wait
    UNION ALL SELECT NULL, l.key, l.epoch, l.actor, l.strength FROM seachange.lock l
        WHERE l.key IN (SELECT key FROM seachange.lock_wait)
    ORDER BY 1"""
_REQUEST = "SELECT seachange.request_lock(%b, %b, %b, %b)"
_ANSWER = "SELECT seachange.answer_requests(%b, %b, %b)"
# One statement, so that the result is consistent.
_TABLE_LOCKS = """SELECT 0, s.lock_requests, 0::bigint, 0::bigint, 0::bigint, 0::bigint FROM seachange.sequencer s
    UNION ALL SELECT 1, 0, l.key, l.epoch, l.actor, l.strength FROM seachange.lock l WHERE l.strength >= 11
    UNION ALL SELECT 2, w.turn, w.key, w.epoch, w.actor, w.strength FROM seachange.lock_wait w WHERE w.strength >= 11
    ORDER BY 1, 2"""
_FORGET_DEAD = """SELECT seachange.forget_locks(array_agg(epoch)) FROM (SELECT epoch FROM seachange.lock
    UNION SELECT epoch FROM seachange.lock_wait) holders WHERE NOT seachange.is_live(epoch)"""


def send_wishes(
    db: Connection,
    epoch: Epoch,
    owner: LockOwner,
    wishes: Sequence[LockWish],
    policy: LockPolicy,
    most: int,
) -> LocksTaken:
    numbers = Bigints()
    for wish in wishes:
        numbers += (wish.key, wish.strength, wish.guard)
    values = (epoch, *owner, numbers, _POLICIES[policy], most)
    head, granted = db.execute(_TAKE, values, prepare=True, binary=True).fetchall()[0]
    if head is None:
        raise errors.StaleNode(node=epoch)
    return LocksTaken(Seq(head), tuple(granted))


def release_locks(db: Connection, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None) -> None:
    named = {"epoch": epoch, "actor": owner.actor, "scope": owner.scope}
    db.execute(_RELEASE, {**named, "keys": None if keys is None else Bigints(keys)}, prepare=True)


def release_scopes(db: Connection, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
    db.execute(_RELEASE_SCOPES, {"epoch": epoch, "actor": actor, "scopes": Bigints(scopes)}, prepare=True)


def enter_queue(db: Connection, epoch: Epoch, owner: LockOwner, wish: LockWish) -> None:
    named = {"key": wish.key, "epoch": epoch, "actor": owner.actor, "strength": wish.strength}
    if not db.execute(_ENTER, named, prepare=True).fetchall():
        raise errors.StaleNode(node=epoch)


def serve_first(db: Connection, wait: LockWait) -> None:
    db.execute(_SERVE_FIRST, (wait.turn, wait.epoch, wait.actor))


def read_queues(db: Connection) -> LockQueues:
    rows = db.execute(_QUEUES, prepare=True, binary=True).fetchall()
    return queues_from((row[1:] for row in rows if row[0] is None), (row for row in rows if row[0] is not None))


def request_lock(db: Connection, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
    values = (epoch, owner.actor, wish.key, wish.strength)
    ((number,),) = db.execute(_REQUEST, values, binary=True).fetchall()
    if number is None:
        raise errors.StaleNode(node=epoch)
    return int(number)


def answer_requests(db: Connection, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]]) -> None:
    numbers = Bigints()
    for owner, wish in held:
        numbers += (wish.key, *owner, wish.strength, wish.guard)
    ((is_live,),) = db.execute(_ANSWER, (epoch, upto, numbers), binary=True).fetchall()
    if not is_live:
        raise errors.StaleNode(node=epoch)


def read_table_locks(db: Connection) -> CatalogTableLocks:
    (first, *rows) = db.execute(_TABLE_LOCKS, prepare=True, binary=True).fetchall()
    held = tuple(held_from(row[2:]) for row in rows if row[0] == 1)
    return CatalogTableLocks(first[1], held, tuple(wait_from(row[1:]) for row in rows if row[0] == 2))


def forget_dead(db: Connection) -> None:
    db.execute(_FORGET_DEAD)
