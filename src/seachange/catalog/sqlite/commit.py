"""Decides and writes commits, inside one write transaction.

**Invariant:** a member is either refused, with nothing of it written, or written completely under its own sequence; the
decision on one member never depends on a later one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from seachange.catalog import rows
from seachange.catalog.sqlite.jobs import job_problem, keeps, write_jobs
from seachange.catalog.sqlite.locks import ON_TABLE, OTHERS, STANDING, STANDING_READ, release_scopes
from seachange.catalog.sqlite.schema import POSITION_BITS
from seachange.model import log
from seachange.model.ids import DescriptorId, Epoch, Seq

_STATE = """SELECT l.seq, l.timestamp_us, s.floor, n.live, EXISTS (SELECT 1 FROM lock)
    FROM log l, sequencer s LEFT JOIN node n ON n.epoch = ?
    WHERE l.seq = (SELECT max(seq) FROM log) AND s.one = 1"""
BURNED_SEQ = -1
KNOWN = """SELECT seq, timestamp_us FROM log WHERE commit_id = ?1
    UNION ALL SELECT -1, 0 FROM burned WHERE commit_id = ?1"""
_MIN_VERSION = "SELECT min_version, live FROM descriptor WHERE id = ?"
_TAIL = "SELECT seq, writes, shares, bulk, touched FROM log WHERE seq > ?"
_NEWEST_VERSION = "SELECT version FROM descriptor WHERE id = ?"
_NAME_HOLDERS = "SELECT id FROM descriptor WHERE name = ? AND live = 1"
_NEWEST_GENERATION = """SELECT id, base FROM generation WHERE index_id = ?
    ORDER BY id DESC LIMIT 1"""
_INTENT = "SELECT 1 FROM intent WHERE segment_id = ? AND epoch = ?"
_SEGMENT = "SELECT 1 FROM segment WHERE id = ?"

_INSERT_LOG = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_BATCH = "INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_SEGMENT = "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_INTENT = "DELETE FROM intent WHERE segment_id = ?"
_INSERT_DESCRIPTOR = """INSERT INTO descriptor VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, name = excluded.name,
        live = excluded.live, changed = excluded.changed,
        min_version = max(min_version, excluded.min_version)"""
_INSERT_VERSION = "INSERT INTO descriptor_version VALUES (?, ?, ?, ?, ?)"
_DROP_INDEXES = """UPDATE index_owner SET dropped = ?
    WHERE descriptor_id = ? AND dropped IS NULL"""
_OWN_INDEX = """INSERT INTO index_owner (index_id, descriptor_id, public) VALUES (?, ?, ?)
    ON CONFLICT (index_id) DO UPDATE SET dropped = NULL, public = max(public, excluded.public)"""
_RAISE = "UPDATE descriptor SET min_version = max(min_version, ?) WHERE id = ?"
_TAKE_GENERATION = "UPDATE sequencer SET next_generation = next_generation + 1"
_NEXT_GENERATION = "SELECT next_generation FROM sequencer"
_INSERT_GENERATION = "INSERT INTO generation VALUES (?, ?, ?, ?)"
_INSERT_VIOLATION = "INSERT INTO violation VALUES (?, ?, ?, ?)"
_INSERT_CHANGE = "INSERT INTO change VALUES (?, ?, ?)"
_INSERT_MEMBER = "INSERT INTO generation_member VALUES (?, ?, ?, ?)"

# A commit with more writes reads all locks, instead of probing each key.
PROBES_MAX = 1_000

# A committed entry as the conflict check sees it: seq, writes, shares, bulk, touched.
_TailEntry = tuple[int, frozenset[int], frozenset[int], frozenset[int], frozenset[int]]


class Sequencer:
    """The end of the log, while the lock is held."""

    def __init__(self, db: sqlite3.Connection, epoch: Epoch, now_us: int) -> None:
        self._db = db
        self._epoch = epoch
        self._now_us = now_us
        row = db.execute(_STATE, (epoch,)).fetchone()
        self._head, self._last_us, self._floor, self._live, self._has_locks = row
        self._tail: list[_TailEntry] | None = None

    def decide(self, requests: Sequence[log.CommitRequest]) -> tuple[log.Outcome, ...]:
        lowest = min(request.validated for request in requests)
        # A single request with nothing to check it against needs no sets.
        if lowest < self._head or len(requests) > 1:
            self._tail = [
                (seq, *(frozenset(rows.unpack(blob)) for blob in blobs))
                for seq, *blobs in self._db.execute(_TAIL, (lowest,))
            ]
        return tuple(self._decide_one(request) for request in requests)

    def _decide_one(self, request: log.CommitRequest) -> log.Outcome:
        known = self._db.execute(KNOWN, (request.commit_id,)).fetchone()
        if known is not None:
            return known_outcome(request, known)
        refusal = self._refusal(request)
        return refusal if refusal is not None else self._write(request)

    def _refusal(self, request: log.CommitRequest) -> log.Refusal | None:
        if not self._live:
            return log.StaleEpoch(self._epoch)
        # Entries at or below the floor have no key sets any more.
        if request.oldest < self._floor or request.validated < self._floor:
            return log.BelowFloor(Seq(self._floor))
        fenced = self._fenced(request)
        if fenced is not None:
            return fenced
        if rows.has_changes(request):
            superseded = self._superseded(request)
            if superseded is not None:
                return log.Superseded(superseded)
        conflict = self._conflict(request) if self._tail else None
        return self._locked(request) if conflict is None and self._has_locks else conflict

    def _fenced(self, request: log.CommitRequest) -> log.Fenced | None:
        for id_, version in request.versions:
            row = self._db.execute(_MIN_VERSION, (id_,)).fetchone()
            if row is None:
                if not any(change.id == id_ for change in request.descriptors):
                    return log.Fenced(id_, 0)
            elif version < row[0] or not row[1]:
                return log.Fenced(id_, row[0])
        return None

    def _superseded(self, request: log.CommitRequest) -> str | None:
        changed = {change.id for change in request.descriptors}
        for change in request.descriptors:
            problem = self._descriptor_problem(change, changed)
            if problem is not None:
                return problem
        names = [change.name for change in request.descriptors if change.body is not None]
        if len(set(names)) != len(names):
            return "name"
        for raise_ in request.raises:
            if raise_.id not in changed and not self._exists(_NEWEST_VERSION, raise_.id):
                return f"descriptor {raise_.id}"
        for swap in request.generations:
            problem = self._generation_problem(swap)
            if problem is not None:
                return problem
        return job_problem(self._db, self._epoch, request) or self._segment_problem(request)

    def _descriptor_problem(self, change: log.DescriptorChange, changed: set[DescriptorId]) -> str | None:
        row = self._db.execute(_NEWEST_VERSION, (change.id,)).fetchone()
        if (row[0] if row else 0) != change.expected or change.version <= change.expected:
            return f"descriptor {change.id}"
        if change.body is not None:
            for (holder,) in self._db.execute(_NAME_HOLDERS, (change.name,)):
                if holder not in changed:
                    return f"name {change.name}"
        return None

    def _generation_problem(self, swap: log.GenerationChange) -> str | None:
        row = self._db.execute(_NEWEST_GENERATION, (swap.index_id,)).fetchone()
        newest, base = row if row else (None, 0)
        # A base never decreases, and is never above the head.
        in_order = swap.base is None or base <= swap.base <= self._head
        if newest != swap.expected or not in_order:
            return f"generation of index {swap.index_id}"
        return None

    def _segment_problem(self, request: log.CommitRequest) -> str | None:
        """A file that is to be attached must still be ours: garbage collection may have removed its intent."""
        deltas = {segment.id for segment in request.segments}
        for segment in rows.attached_segments(request):
            ours = self._exists(_INTENT, segment.id, self._epoch) or keeps(self._db, request.jobs, segment.id)
            if not ours and (segment.id in deltas or not self._exists(_SEGMENT, segment.id)):
                return f"segment {segment.id}"
        return None

    def _exists(self, query: str, *values: int) -> bool:
        return self._db.execute(query, values).fetchone() is not None

    def _conflict(self, request: log.CommitRequest) -> log.Refusal | None:
        writes = frozenset(request.writes)
        needed = writes.union(request.shares, request.reads)
        bulk, touched = frozenset(request.bulk), frozenset(request.touched)
        revalidate = False
        for seq, tail_writes, tail_shares, tail_bulk, tail_touched in self._tail or ():
            if seq <= request.validated:
                continue
            if not (needed.isdisjoint(tail_writes) and writes.isdisjoint(tail_shares)):
                return log.Conflict(Seq(seq))
            if not (touched.isdisjoint(tail_bulk) and bulk.isdisjoint(tail_touched)):
                revalidate = True
        return log.Revalidate(Seq(self._head)) if revalidate else None

    def _locked(self, request: log.CommitRequest) -> log.CommitBlocked | None:
        # Jobs have no actor: their publications change no rows.
        for index_id in request.touched if request.actor else ():
            on_table = self._db.execute(ON_TABLE, (index_id, self._epoch, request.actor)).fetchone()
            if on_table is not None:
                return rows.table_locked_from(*on_table)
        for key in request.reads:
            on_rows = self._db.execute(STANDING_READ, (key, self._epoch, request.actor)).fetchone()
            if on_rows is not None:
                return rows.locked_from(*on_rows)
        if len(request.writes) > PROBES_MAX:
            others = self._db.execute(OTHERS, (self._epoch, request.actor)).fetchall()
            # A set of a million keys takes a third of a second, under the sequencer lock.
            written = frozenset(request.writes) if others else frozenset()
            return next((rows.locked_from(*other) for other in others if other[1] in written), None)
        for key in request.writes:
            found = self._db.execute(STANDING, (key, self._epoch, request.actor)).fetchone()
            if found is not None:
                return rows.locked_from(*found)
        return None

    def _write(self, request: log.CommitRequest) -> log.Committed:
        seq = self._head + 1
        timestamp_us = max(self._now_us, self._last_us + 1)
        key_sets = (request.writes, request.shares, request.bulk, request.touched)
        self._db.execute(
            _INSERT_LOG,
            (seq, timestamp_us, request.commit_id, *map(rows.pack, key_sets), rows.parts_of(request)),
        )
        for number, batch in enumerate(request.batches):
            position = (seq << POSITION_BITS) | number
            values = (position, batch.index_id, batch.layout_id, batch.rows, batch.payload, batch.checksum)
            self._db.execute(_INSERT_BATCH, values)
        if rows.has_changes(request):
            self._write_changes(request, seq, timestamp_us)
        if request.scopes:
            release_scopes(self._db, self._epoch, request.actor, request.scopes)
        if self._tail is not None:
            self._tail.append((seq, *map(frozenset, key_sets)))
        self._head, self._last_us = seq, timestamp_us
        return log.Committed(Seq(seq), timestamp_us)

    def _write_changes(self, request: log.CommitRequest, seq: int, timestamp_us: int) -> None:
        for change in request.descriptors:
            self._write_descriptor(change, seq)
        self._db.executemany(_RAISE, [(r.version, r.id) for r in request.raises])
        self._write_segments(request, seq)
        for swap in request.generations:
            self._write_generation(swap, seq)
        self._db.executemany(_INSERT_VIOLATION, [(seq, v.key, v.text, v.session) for v in request.violations])
        if request.change:
            self._db.execute(_INSERT_CHANGE, (seq, timestamp_us, request.change))
        if request.jobs:
            write_jobs(self._db, self._epoch, request, seq, timestamp_us)

    def _write_descriptor(self, change: log.DescriptorChange, seq: int) -> None:
        live = change.body is not None
        min_version = 0 if live else change.version
        self._db.execute(_INSERT_DESCRIPTOR, (change.id, change.version, change.name, live, min_version, seq))
        self._db.execute(
            _INSERT_VERSION, (change.id, change.version, seq, change.body, rows.descriptor_checksum(change))
        )
        self._db.execute(_DROP_INDEXES, (seq, change.id))
        owned = rows.owned_indexes(change.body)
        self._db.executemany(_OWN_INDEX, [(index, change.id, is_public) for index, is_public in owned])

    def _write_segments(self, request: log.CommitRequest, seq: int) -> None:
        """Turns intents into references; a segment that is one already stays as it is."""
        bases = {
            member.segment.id: change.base if change.base is not None else seq - 1
            for change in request.generations
            for member in change.members
        }
        deltas = {segment.id for segment in request.segments}
        for segment in rows.attached_segments(request):
            taken = self._db.execute(_DELETE_INTENT, (segment.id,)).rowcount
            if taken or keeps(self._db, request.jobs, segment.id):
                delta = seq if segment.id in deltas else None
                since = seq if delta is not None else bases[segment.id]
                self._db.execute(_INSERT_SEGMENT, rows.segment_values(segment, since, delta))

    def _write_generation(self, swap: log.GenerationChange, seq: int) -> None:
        (id_,) = self._db.execute(_NEXT_GENERATION).fetchone()
        self._db.execute(_TAKE_GENERATION)
        base = swap.base if swap.base is not None else seq - 1
        self._db.execute(_INSERT_GENERATION, (id_, swap.index_id, base, seq))
        self._db.executemany(
            _INSERT_MEMBER,
            [(id_, n, member.segment.id, member.deleted) for n, member in enumerate(swap.members)],
        )


def known_outcome(request: log.CommitRequest, row: tuple[int, int]) -> log.Committed | log.Burned:
    if row[0] == BURNED_SEQ:
        return log.Burned(request.commit_id)
    return log.Committed(Seq(row[0]), row[1])
