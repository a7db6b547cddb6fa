"""Nodes, their files and their claims, inside one write transaction.

Heartbeats are times of a clock that all processes of a machine share, so a reboot ends every epoch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.rows import read_asked, write_asked
from seachange.model.ids import Epoch, SegmentId, Seq
from seachange.model.pace import Pace
from seachange.model.sessions import AskedSession, Beat

EXPIRED = """SELECT epoch FROM node
    WHERE live = 1 AND heartbeat_us + expiry_ms * 1000 < ? ORDER BY epoch"""

_BOOT = "SELECT boot_id FROM sequencer"
_SET_BOOT = "UPDATE sequencer SET boot_id = ?"
_END_ALL = ("UPDATE node SET live = 0", "DELETE FROM lock", "DELETE FROM lock_wait")
_HEAD = "SELECT max(seq) FROM log"
_TAKE_EPOCH = "UPDATE sequencer SET next_epoch = next_epoch + 1"
_NEXT_EPOCH = "SELECT next_epoch FROM sequencer"
_INSERT_NODE = "INSERT INTO node VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?3, '[]', ?7, 0, 0, 0, '')"
_BEAT = """UPDATE node SET heartbeat_us = ?, low_water = max(low_water, ?), write_mark = max(write_mark, ?),
    holders = ?, latency_us = ?, usual_us = ? WHERE epoch = ? AND live = 1"""
_ASKED = "SELECT asked FROM node WHERE epoch = ?"
_ANSWERED = "UPDATE node SET asked = '' WHERE epoch = ?"
_ASK = "UPDATE node SET asked = asked || ? WHERE epoch = ? AND live = 1"
# Only live epochs hold locks.
_END = (
    "UPDATE node SET live = 0 WHERE epoch = ?",
    "DELETE FROM lock WHERE epoch = ?",
    "DELETE FROM lock_wait WHERE epoch = ?",
)
_RELEASE_AGREED = "SELECT release FROM sequencer"
_AGREE = """UPDATE sequencer SET release = max(release,
    (SELECT min(?1, coalesce(min(release), ?1)) FROM node WHERE live = 1))"""
_LIVE = "SELECT 1 FROM node WHERE epoch = ? AND live = 1"
_OTHERS = "SELECT epoch FROM node WHERE live = 1 AND epoch <> ?"
_FILES = "SELECT count(*) FROM segment"
_SET_IDENTITY = "UPDATE sequencer SET database_id = ?"
_PROPOSE_SECRET = "INSERT OR IGNORE INTO secret VALUES (1, ?)"
_SECRET = "SELECT value FROM secret"
_NEXT_ID = "SELECT next_id FROM sequencer"
_TAKE_IDS = "UPDATE sequencer SET next_id = next_id + ?"
_NEXT_SEGMENT = "SELECT next_segment FROM sequencer"
_TAKE_SEGMENTS = "UPDATE sequencer SET next_segment = next_segment + ?"
_INSERT_INTENT = "INSERT INTO intent VALUES (?, ?)"
_ABANDON = "DELETE FROM intent WHERE segment_id = ? AND epoch = ?"
_INSERT_GARBAGE = "INSERT INTO garbage VALUES (?)"
_FORGET_FILE = "DELETE FROM garbage WHERE segment_id = ?"
_HOLDER = """SELECT c.epoch FROM claim c JOIN node n ON n.epoch = c.epoch AND n.live = 1
    WHERE c.resource = ?"""
_CLAIM = "INSERT OR REPLACE INTO claim VALUES (?, ?)"
_RELEASE = "DELETE FROM claim WHERE resource = ? AND epoch = ?"


def note_boot(db: sqlite3.Connection, boot_id: str) -> None:
    """Ends every epoch if the machine was rebooted since the catalog was last opened."""
    if db.execute(_BOOT).fetchone()[0] != boot_id:
        for statement in _END_ALL:
            db.execute(statement)
        db.execute(_SET_BOOT, (boot_id,))


def register(db: sqlite3.Connection, name: str, expiry_ms: int, release: int, now_us: int) -> Epoch:
    (agreed,) = db.execute(_RELEASE_AGREED).fetchone()
    if release < agreed:
        raise errors.ReleaseTooOld(needed=agreed, known=release)
    (epoch,) = db.execute(_NEXT_EPOCH).fetchone()
    db.execute(_TAKE_EPOCH)
    (head,) = db.execute(_HEAD).fetchone()
    db.execute(_INSERT_NODE, (epoch, name, head, now_us, expiry_ms, FORMAT, release))
    return Epoch(epoch)


def agree(db: sqlite3.Connection, release: int) -> int:
    db.execute(_AGREE, (release,))
    return int(db.execute(_RELEASE_AGREED).fetchone()[0])


def beat(
    db: sqlite3.Connection, epoch: Epoch, low_water: Seq, write_mark: Seq, holders: str, pace: Pace, now_us: int
) -> Beat:
    values = (now_us, low_water, write_mark, holders, pace.latency_us, pace.usual_us, epoch)
    if db.execute(_BEAT, values).rowcount == 0:
        raise errors.StaleNode(node=epoch)
    (asked,) = db.execute(_ASKED, (epoch,)).fetchone()
    if asked:
        db.execute(_ANSWERED, (epoch,))
    return Beat(Seq(db.execute(_HEAD).fetchone()[0]), read_asked(asked))


def ask(db: sqlite3.Connection, epoch: Epoch, asked: AskedSession) -> bool:
    return db.execute(_ASK, (write_asked(asked), epoch)).rowcount > 0


def end(db: sqlite3.Connection, epochs: Sequence[Epoch]) -> None:
    for statement in _END:
        db.executemany(statement, [(epoch,) for epoch in epochs])


def secret(db: sqlite3.Connection, proposed: str) -> str:
    db.execute(_PROPOSE_SECRET, (proposed,))
    return str(db.execute(_SECRET).fetchone()[0])


def move(db: sqlite3.Connection, epoch: Epoch, identity: str, files: int) -> bool:
    if db.execute(_FILES).fetchone() != (files,):
        return False
    db.execute(_SET_IDENTITY, (identity,))
    end(db, [Epoch(other) for (other,) in db.execute(_OTHERS, (epoch,)).fetchall()])
    return True


def require_live(db: sqlite3.Connection, epoch: Epoch) -> None:
    if db.execute(_LIVE, (epoch,)).fetchone() is None:
        raise errors.StaleNode(node=epoch)


def take_ids(db: sqlite3.Connection, count: int) -> range:
    (first,) = db.execute(_NEXT_ID).fetchone()
    db.execute(_TAKE_IDS, (count,))
    return range(first, first + count)


def reserve(db: sqlite3.Connection, epoch: Epoch, count: int) -> range:
    require_live(db, epoch)
    (first,) = db.execute(_NEXT_SEGMENT).fetchone()
    db.execute(_TAKE_SEGMENTS, (count,))
    db.executemany(_INSERT_INTENT, [(id_, epoch) for id_ in range(first, first + count)])
    return range(first, first + count)


def abandon(db: sqlite3.Connection, epoch: Epoch, ids: Sequence[SegmentId]) -> None:
    for id_ in ids:
        if db.execute(_ABANDON, (id_, epoch)).rowcount:
            db.execute(_INSERT_GARBAGE, (id_,))


def forget(db: sqlite3.Connection, ids: Sequence[SegmentId]) -> None:
    db.executemany(_FORGET_FILE, [(id_,) for id_ in ids])


def claim(db: sqlite3.Connection, epoch: Epoch, resource: str) -> bool:
    require_live(db, epoch)
    holder = db.execute(_HOLDER, (resource,)).fetchone()
    if holder is not None and holder[0] != epoch:
        return False
    db.execute(_CLAIM, (resource, epoch))
    return True


def release(db: sqlite3.Connection, epoch: Epoch, resource: str) -> None:
    db.execute(_RELEASE, (resource, epoch))
