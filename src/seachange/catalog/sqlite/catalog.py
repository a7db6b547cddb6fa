"""`SqliteCatalog`: each method of the port as one transaction over the modules of this package."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from seachange import errors
from seachange.catalog.reads import CatalogReads, Query
from seachange.catalog.rows import Row, check_request, unpack
from seachange.catalog.sqlite import connections, exports, feeds, jobs, locks, nodes, read
from seachange.catalog.sqlite.collect import raise_floor, remove_slices
from seachange.catalog.sqlite.commit import BURNED_SEQ, KNOWN, Sequencer
from seachange.catalog.sqlite.copy import copy_catalog
from seachange.catalog.sqlite.schema import BIND, POSITION_BITS, check_format, format_of, has_content, migrate
from seachange.catalog.sqlite.sequences import draw_sequence, move_sequence, write_sequence
from seachange.model.exports import ExportRecord
from seachange.model.feeds import FeedRecord
from seachange.model.ids import CommitId, DescriptorId, Epoch, IndexId, KeyHash, SegmentId, Seq, TableId
from seachange.model.jobs import NO_JOB, JobId, JobRequest
from seachange.model.locking import CatalogTableLocks, LockOwner, LockPolicy, LockQueues, LocksTaken, LockWait, LockWish
from seachange.model.log import CommitRequest, Committed, LogEntry, Outcome, RecordedViolation
from seachange.model.pace import Pace
from seachange.model.schema.sequences import SequenceBlock, SequenceLimits, SequenceState
from seachange.model.sessions import AskedSession, Beat
from seachange.runtime.clock import Clock
from seachange.runtime.faults import reach

T = TypeVar("T")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BURN = "INSERT INTO burned VALUES (?, ?)"


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


class SqliteCatalog(CatalogReads):
    """The catalog in one file. Its folder must exist and be on a local file system."""

    def __init__(self, path: Path, clock: Clock, boot_id: str | None = None, creates: bool = True) -> None:
        """Raises CatalogMissing if there is none and `creates` is False; then nothing is written."""
        if not creates and not has_content(path):
            raise errors.CatalogMissing(catalog=str(path))
        connections.refuse_network_file_system(path)
        path = path.absolute()
        self.url = f"sqlite:///{quote(str(path))}"
        self._path = path
        self._clock = clock
        self._readers = connections.Readers(path)
        lock_path = path.with_name(f"{path.name}-lock")
        with ExitStack() as undo:
            self._writer = connections.SqliteWriter(path, lock_path)
            undo.callback(self._writer.close)
            migrate(self._writer, path, creates)
            with self._writer as db:
                nodes.note_boot(db, boot_id if boot_id is not None else _boot_id())
            # Heartbeats share neither connection nor in-process lock with commits.
            self._pulse = connections.SqliteWriter(path, lock_path)
            undo.callback(self._pulse.close)
            # A power cut ends every epoch, so locks need not survive one.
            self._locks = connections.SqliteWriter(path, lock_path, durable=False)
            undo.callback(self._locks.close)
            self._open = undo.pop_all()

    def close(self) -> None:
        self._readers.close()
        self._open.close()

    _numbers = staticmethod(unpack)

    def _read(self, work: Callable[[Query], T], snapshot: bool = False) -> T:
        with connections.Read(self._readers) as db:
            return work(partial(read.query, db))

    def _index_batches(self, query: Query, index_id: IndexId, base: int, at: Seq) -> list[Row]:
        return query(read.INDEX_BATCHES, index_id, (base + 1) << POSITION_BITS, (at + 1) << POSITION_BITS)

    def bind(self, identity: str) -> str:
        with self._writer as db:
            db.execute(BIND, (identity,))
        return self.identity() or identity

    def secret(self, proposed: str) -> str:
        with self._writer as db:
            return nodes.secret(db, proposed)

    def move(self, epoch: Epoch, identity: str, files: int) -> bool:
        with self._writer as db:
            nodes.require_live(db, epoch)
            return nodes.move(db, epoch, identity, files)

    def register_node(self, name: str, expiry_ms: int, release: int = 1) -> Epoch:
        with self._writer as db:
            # Another program may have upgraded the catalog to a newer format in the meantime.
            check_format(format_of(db), self._path)
            return nodes.register(db, name, expiry_ms, release, self._clock.steady_us())

    def agree_release(self, release: int) -> int:
        with self._writer as db:
            return nodes.agree(db, release)

    def heartbeat(
        self,
        epoch: Epoch,
        low_water: Seq,
        write_mark: Seq | None = None,
        holders: str = "[]",
        pace: Pace = Pace(),  # noqa: B008 - a value
    ) -> Beat:
        mark = low_water if write_mark is None else write_mark
        with self._pulse as db:
            return nodes.beat(db, epoch, low_water, mark, holders, pace, self._clock.steady_us())

    def ask_session(self, epoch: Epoch, asked: AskedSession) -> bool:
        with self._writer as db:
            return nodes.ask(db, epoch, asked)

    def end_node(self, epoch: Epoch) -> None:
        with self._writer as db:
            nodes.end(db, (epoch,))

    def expire_nodes(self) -> tuple[Epoch, ...]:
        # Usually no node has expired, and the lock is not needed to see that.
        if not self._expired():
            return ()
        with self._pulse as db:
            rows = db.execute(nodes.EXPIRED, (self._clock.steady_us(),)).fetchall()
            expired = tuple(Epoch(epoch) for (epoch,) in rows)
            nodes.end(db, expired)
        return expired

    def _expired(self) -> bool:
        with connections.Read(self._readers) as db:
            return db.execute(nodes.EXPIRED, (self._clock.steady_us(),)).fetchone() is not None

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        if not requests:
            return ()
        for request in requests:
            check_request(request)
        outcomes: tuple[Outcome, ...] | None = None
        try:
            with self._writer as db:
                reach("commit.locked")
                self._writer.make_room()
                decided = Sequencer(db, epoch, self._clock.wall_us()).decide(requests)
                reach("commit.written")
                outcomes = decided
        except errors.DiskFull:
            # The frame that commits a transaction is its last, and that did not fit.
            raise
        except errors.Error as failure:
            if outcomes is None:
                raise
            # COMMIT itself failed, but its frames may have reached the disk.
            return self._resolve_unknown(requests, failure)
        reach("commit.decided")
        return outcomes

    def _resolve_unknown(self, requests: Sequence[CommitRequest], failure: errors.Error) -> tuple[Outcome, ...]:
        """Finds out whether a COMMIT that reported an error took place, or makes sure that it never will."""
        found = [self._look_up(request.commit_id, failure) for request in requests]
        outcomes = [outcome for outcome in found if outcome is not None]
        if len(outcomes) == len(found):
            return tuple(outcomes)
        raise failure

    def _look_up(self, commit_id: CommitId, failure: errors.Error) -> Committed | None:
        try:
            return self.outcome(commit_id)
        except (errors.Error, MemoryError) as problem:
            raise errors.UnknownCommitOutcome(commit_id=commit_id.hex(), detail=str(failure)) from problem

    def outcome(self, commit_id: CommitId) -> Committed | None:
        with self._writer as db:
            known = db.execute(KNOWN, (commit_id,)).fetchone()
            if known is None:
                db.execute(_BURN, (commit_id, self._clock.wall_us()))
        if known is None or known[0] == BURNED_SEQ:
            return None
        return Committed(Seq(known[0]), known[1])

    def head(self) -> Seq:
        return Seq(self._number(read.HEAD))

    def floor(self) -> Seq:
        return Seq(self._number(read.FLOOR))

    def _number(self, query: str) -> int:
        """A single statement is its own read transaction."""
        db = self._readers.take()
        try:
            (number,) = db.execute(query).fetchone()
        except sqlite3.Error as problem:
            db.close()
            raise connections.client_error(problem, self._path) from problem
        self._readers.give(db)
        return int(number)

    def follow(self, epoch: Epoch, after: Seq, upto: Seq | None = None) -> tuple[LogEntry, ...]:
        # If nothing is read, nothing can be missing, so the checks are not needed.
        if self._number(read.HEAD) <= after:
            return ()
        with connections.Read(self._readers) as db:
            return read.read_entries(db, epoch, after, upto)

    def first_reliance(self, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
        with connections.Read(self._readers) as db:
            return read.read_first_reliance(db, epoch, keys, after)

    def first_violation(self, keys: Sequence[KeyHash], after: Seq) -> RecordedViolation | None:
        with connections.Read(self._readers) as db:
            return read.read_first_violation(db, keys, after)

    def watch(self) -> connections.FileWatch:
        return connections.FileWatch(self._path)

    def take_locks(
        self,
        epoch: Epoch,
        owner: LockOwner,
        wishes: Sequence[LockWish],
        policy: LockPolicy,
        most: int,
    ) -> LocksTaken:
        with self._locks as db:
            nodes.require_live(db, epoch)
            return locks.take(db, epoch, owner, wishes, policy, most)

    def release_locks(self, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None = None) -> None:
        with self._locks as db:
            locks.release(db, epoch, owner, keys)

    def release_scopes(self, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
        with self._locks as db:
            locks.release_scopes(db, epoch, actor, scopes)

    def enter_queue(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> None:
        with self._locks as db:
            nodes.require_live(db, epoch)
            locks.enter_queue(db, epoch, owner, wish)

    def serve_first(self, wait: LockWait) -> None:
        with self._locks as db:
            locks.serve_first(db, wait)

    def lock_queues(self) -> LockQueues:
        with connections.Read(self._readers) as db:
            return locks.read_queues(db)

    def request_lock(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
        with self._locks as db:
            nodes.require_live(db, epoch)
            return locks.request(db, epoch, owner, wish)

    def answer_requests(self, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]] = ()) -> None:
        with self._locks as db:
            nodes.require_live(db, epoch)
            locks.answer(db, epoch, upto, held)

    def table_locks(self) -> CatalogTableLocks:
        with connections.Read(self._readers) as db:
            return locks.read_table_locks(db)

    def sequence_at(self, timestamp_us: int) -> Seq:
        with connections.Read(self._readers) as db:
            return read.read_sequence_at(db, timestamp_us)

    def allocate_ids(self, count: int) -> range:
        with self._writer as db:
            return nodes.take_ids(db, count)

    def draw_sequence(self, id_: DescriptorId, run: int, limits: SequenceLimits, count: int) -> SequenceBlock:
        with self._writer as db:
            return draw_sequence(db, id_, run, limits, count)

    def set_sequence(self, id_: DescriptorId, run: int, state: SequenceState) -> None:
        with self._writer as db:
            write_sequence(db, id_, run, state)

    def move_sequence(self, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState) -> bool:
        with self._writer as db:
            return move_sequence(db, id_, run, expected, state)

    def reserve_segments(self, epoch: Epoch, count: int) -> range:
        with self._writer as db:
            return nodes.reserve(db, epoch, count)

    def abandon_segments(self, epoch: Epoch, ids: Sequence[SegmentId]) -> None:
        with self._writer as db:
            nodes.abandon(db, epoch, ids)

    def collect(self, epoch: Epoch, retention_us: int) -> tuple[SegmentId, ...]:
        with self._writer as db:
            nodes.require_live(db, epoch)
            garbage, slices = raise_floor(db, self._clock.wall_us(), retention_us)
            jobs.forget_old(db, self._clock.wall_us())
        remove_slices(self._writer, slices)
        return garbage

    def forget_files(self, ids: Sequence[SegmentId]) -> None:
        with self._writer as db:
            nodes.forget(db, ids)

    def record_export(self, epoch: Epoch, record: ExportRecord) -> None:
        with self._writer as db:
            exports.record_export(db, epoch, record)

    def forget_exports(self, epoch: Epoch, table_id: TableId, snapshots: Sequence[int]) -> None:
        with self._writer as db:
            nodes.require_live(db, epoch)
            exports.forget_exports(db, table_id, snapshots)

    def create_feed(self, record: FeedRecord) -> bool:
        with self._writer as db:
            return feeds.create_feed(db, record)

    def advance_feed(self, database: str, name: str, position: Seq) -> None:
        with self._writer as db:
            feeds.advance_feed(db, database, name, position)

    def end_feed(self, database: str, name: str, reason: str) -> None:
        with self._writer as db:
            feeds.end_feed(db, database, name, reason)

    def drop_feed(self, database: str, name: str) -> None:
        with self._writer as db:
            feeds.drop_feed(db, database, name)

    def _written_inline(self, index_id: IndexId, after: Seq) -> Row:
        return self._read(lambda query: query(read.WRITTEN_INLINE, index_id, (after + 1) << POSITION_BITS)[0])

    def copy_to(self, folder: Path) -> Seq:
        with closing(connections.connect(self._path)) as db:
            return copy_catalog(db, folder)

    def claim(self, epoch: Epoch, resource: str) -> bool:
        with self._writer as db:
            return nodes.claim(db, epoch, resource)

    def release(self, epoch: Epoch, resource: str) -> None:
        with self._writer as db:
            nodes.release(db, epoch, resource)

    def new_job_id(self) -> JobId:
        with self._writer as db:
            return jobs.take_id(db)

    def request_job(self, job_id: JobId, request: JobRequest) -> bool:
        with self._writer as db:
            return jobs.ask(db, job_id, request)

    def cancel_job(self, job_id: JobId, expected: int) -> bool:
        with self._writer as db:
            return jobs.cancel(db, job_id, expected)

    def log_event(self, text: str, job_id: JobId = NO_JOB) -> None:
        with self._writer as db:
            jobs.log_event(db, job_id, text, db.execute(read.HEAD).fetchone()[0], self._clock.wall_us())
