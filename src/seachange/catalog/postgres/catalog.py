"""`PostgresCatalog`: each method of the port as one call of a module in this package."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import LiteralString, TypeVar

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.postgres import jobs, locks, read
from seachange.catalog.postgres.arrays import Bigints
from seachange.catalog.postgres.collect import drop_partitions, read_garbage, remove_log
from seachange.catalog.postgres.commit import PARTITION_SPAN, send_commit, send_outcome
from seachange.catalog.postgres.connections import Connection, DescriptorWatch, Pool, one_snapshot
from seachange.catalog.postgres.copy import copy_catalog, fill_catalog
from seachange.catalog.postgres.schema import check_format, format_of, migrate
from seachange.catalog.postgres.sequences import draw_sequence, move_sequence, write_sequence
from seachange.catalog.reads import CatalogReads, Query
from seachange.catalog.rows import BURNED_KEPT_US, Row, check_request, check_snapshot, read_asked, write_asked
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

# How long the outcome of a commit with a lost connection is queried before it is reported as unknown.
PATIENCE_S = 30.0
RETRY_S = 0.1
_US = 1_000_000

_BIND = "UPDATE seachange.sequencer SET database_id = %s WHERE database_id IS NULL"
_PROPOSE_SECRET = "INSERT INTO seachange.secret VALUES (1, %s) ON CONFLICT DO NOTHING"
_SECRET = "SELECT value FROM seachange.secret"
_LOCK = "SELECT seachange.lock_sequencer()"
_IS_LIVE = "SELECT seachange.is_live(%b)"
_FILES = "SELECT count(*) FROM seachange.segment"
_SET_IDENTITY = "UPDATE seachange.sequencer SET database_id = %s"
_END_OTHERS = """WITH ended AS (UPDATE seachange.node SET live = false WHERE live AND epoch <> %b RETURNING epoch)
    SELECT seachange.forget_locks(array_agg(epoch)) FROM ended"""
_REGISTER = "SELECT seachange.register_node(%s, %b, %b, %b)"
_RELEASE_AGREED = "SELECT release FROM seachange.sequencer"
_AGREE = "SELECT seachange.agree_release(%b)"
_BEAT = """UPDATE seachange.node
    SET heartbeat_us = seachange.now_us(), low_water = greatest(low_water, %b),
        write_mark = greatest(write_mark, %b), holders = %s,
        latency_us = %b, usual_us = %b
    WHERE epoch = %b AND live RETURNING seachange.head(), asked"""
# Only what has been read: another node may have added to it since.
_ANSWERED = "UPDATE seachange.node SET asked = substr(asked, length(%s) + 1) WHERE epoch = %b"
_ASK = "UPDATE seachange.node SET asked = asked || %s WHERE epoch = %b AND live RETURNING epoch"
_END = "SELECT seachange.end_node(%b)"
_ANY_EXPIRED = """SELECT 1 FROM seachange.node
    WHERE live AND heartbeat_us + expiry_ms * 1000 < seachange.now_us() LIMIT 1"""
_EXPIRE = "SELECT seachange.expire_nodes()"
_HEAD = "SELECT seachange.head()"
_FLOOR = "SELECT floor FROM seachange.sequencer"
_SEQUENCE_AT = "SELECT seachange.sequence_at(%b)"
_ALLOCATE = """UPDATE seachange.sequencer SET next_id = next_id + %b
    RETURNING next_id - %b"""
_RESERVE = "SELECT seachange.reserve_segments(%b, %b)"
_ABANDON = """WITH abandoned AS (DELETE FROM seachange.intent
        WHERE epoch = %b AND segment_id = ANY(%b) RETURNING segment_id)
    INSERT INTO seachange.garbage SELECT segment_id FROM abandoned"""
_FORGET_FILES = "DELETE FROM seachange.garbage WHERE segment_id = ANY(%b)"
_RAISE_FLOOR = "SELECT seachange.raise_floor(%b, %b, %b)"
_CREATE_FEED = "SELECT seachange.create_feed(%s, %s, %s, %s, %b, %b)"
_ADVANCE_FEED = "UPDATE seachange.feed SET position = greatest(position, %b) WHERE database = %s AND name = %s"
_END_FEED = "UPDATE seachange.feed SET ended = %s WHERE database = %s AND name = %s AND ended = ''"
_DROP_FEED = "DELETE FROM seachange.feed WHERE database = %s AND name = %s"
_WRITTEN_INLINE = """SELECT CAST(coalesce(sum(rows), 0) AS bigint), CAST(coalesce(sum(length(payload)), 0) AS bigint)
    FROM seachange.batch WHERE index_id = %b AND seq > %b AND seq <= seachange.head()"""
_RECORD_EXPORT = "SELECT seachange.record_export(%b, %b, %b, %b, %s, %b, %b)"
_FORGET_EXPORTS = "SELECT seachange.forget_exports(%b, %b, %b)"
_ADD_PARTITIONS = "SELECT seachange.add_partitions(%b, %b)"
_CLAIM = "SELECT seachange.claim(%b, %s)"
_RELEASE = "DELETE FROM seachange.claim WHERE resource = %s AND epoch = %b"


class PostgresCatalog(CatalogReads):
    """The catalog in one database, in its schema `seachange`."""

    def __init__(self, url: str, clock: Clock, patience_s: float = PATIENCE_S, creates: bool = True) -> None:
        """Raises CatalogMissing if there is none and `creates` is False."""
        self.url = url
        self._clock = clock
        self._patience_s = patience_s
        self._pool = Pool(url)
        # Heartbeats share no connection with statements. They need not be durable: any action that depends on one is a
        # durable write after it, and a lost one is like a late one.
        self._pulse = Pool(url, durable=False)
        self._closed = threading.Event()
        self._partitioned = 0
        try:
            self._pool.run(partial(migrate, url=url, creates=creates))
            self._extend_partitions(self.head())
        except errors.Error:
            self.close()
            raise

    def close(self) -> None:
        self._closed.set()
        self._pool.close()
        self._pulse.close()

    _numbers = tuple

    def _read(self, work: Callable[[Query], T], snapshot: bool = False) -> T:
        def run(db: Connection) -> T:
            with one_snapshot(db) if snapshot else nullcontext():
                return work(partial(read.query, db))

        return self._pool.run(run)

    def _index_batches(self, query: Query, index_id: IndexId, base: int, at: Seq) -> list[Row]:
        return query(read.INDEX_BATCHES, index_id, base, at)

    def bind(self, identity: str) -> str:
        self._do(_BIND, identity)
        return self.identity() or identity

    def secret(self, proposed: str) -> str:
        self._do(_PROPOSE_SECRET, proposed)
        return str(self._row(_SECRET)[0])

    def move(self, epoch: Epoch, identity: str, files: int) -> bool:
        def change(db: Connection) -> bool:
            with db.transaction():
                db.execute(_LOCK)
                if not read.query(db, _IS_LIVE, epoch)[0][0]:
                    raise errors.StaleNode(node=epoch)
                if read.query(db, _FILES) != [(files,)]:
                    return False
                db.execute(_SET_IDENTITY, (identity,))
                db.execute(_END_OTHERS, (epoch,))
                return True

        return self._pool.run(change)

    def _row(self, text: LiteralString, *values: object) -> tuple[object, ...]:
        return self._pool.run(lambda db: read.query(db, text, *values))[0]

    def _number(self, text: LiteralString, *values: object) -> int | None:
        (number,) = self._row(text, *values)
        assert number is None or isinstance(number, int)
        return number

    def _known(self, text: LiteralString, *values: object) -> int:
        number = self._number(text, *values)
        assert number is not None
        return number

    def _do(self, text: LiteralString, *values: object) -> None:
        self._pool.run(lambda db: db.execute(text, values))

    def register_node(self, name: str, expiry_ms: int, release: int = 1) -> Epoch:
        # Another program may have upgraded the catalog to a newer format in the meantime.
        check_format(self._pool.run(format_of), self._pool.name)
        epoch = self._number(_REGISTER, name, expiry_ms, FORMAT, release)
        if epoch is None:
            raise errors.ReleaseTooOld(needed=self._known(_RELEASE_AGREED), known=release)
        return Epoch(epoch)

    def agree_release(self, release: int) -> int:
        return self._known(_AGREE, release)

    def heartbeat(
        self,
        epoch: Epoch,
        low_water: Seq,
        write_mark: Seq | None = None,
        holders: str = "[]",
        pace: Pace = Pace(),  # noqa: B008 - a value
    ) -> Beat:
        mark = low_water if write_mark is None else write_mark
        values = (low_water, mark, holders, pace.latency_us, pace.usual_us, epoch)
        rows = self._pulse.run(lambda db: read.query(db, _BEAT, *values))
        if not rows:
            raise errors.StaleNode(node=epoch)
        ((head, asked),) = rows
        if asked:
            self._pulse.run(lambda db: db.execute(_ANSWERED, (asked, epoch)))
        return Beat(Seq(head), read_asked(asked))

    def ask_session(self, epoch: Epoch, asked: AskedSession) -> bool:
        return bool(self._pulse.run(lambda db: read.query(db, _ASK, write_asked(asked), epoch)))

    def end_node(self, epoch: Epoch) -> None:
        self._do(_END, epoch)

    def expire_nodes(self) -> tuple[Epoch, ...]:
        # Usually no node has expired, and the lock is not needed to see that.
        if not self._pulse.run(lambda db: read.query(db, _ANY_EXPIRED)):
            return ()
        rows = self._pulse.run(lambda db: read.query(db, _EXPIRE))
        return tuple(sorted(Epoch(epoch) for (epoch,) in rows))

    def commit(self, epoch: Epoch, requests: Sequence[CommitRequest]) -> tuple[Outcome, ...]:
        if not requests:
            return ()
        for request in requests:
            check_request(request)
        # The lock is taken and the rows are written inside the server, where there are no fault points: "commit.locked"
        # is passed before the call, "commit.decided" after it.
        reach("commit.locked")
        try:
            outcomes = self._pool.attempt(lambda db: send_commit(db, epoch, requests))
        except (errors.CatalogUnavailable, MemoryError) as problem:
            # Without memory for the answer it is lost as well.
            outcomes = self._resolve_unknown(epoch, requests, problem)
        reach("commit.decided")
        # A decided commit never reports an error; the next one creates the partition.
        with suppress(errors.OperationalError, MemoryError):
            self._extend_partitions(max((o.seq for o in outcomes if isinstance(o, Committed)), default=0))
        return outcomes

    def _resolve_unknown(
        self, epoch: Epoch, requests: Sequence[CommitRequest], cause: errors.CatalogUnavailable | MemoryError
    ) -> tuple[Outcome, ...]:
        """Asks again until the outcome is known. A committed request is answered as before; a refused one is
        tombstoned, because the first call may still be running."""
        deadline_us = self._clock.steady_us() + int(self._patience_s * _US)
        while self._clock.steady_us() < deadline_us and not self._closed.is_set():
            self._pool.drop_idle()
            try:
                outcomes = self._pool.attempt(lambda db: send_commit(db, epoch, requests))
                return tuple(map(self._final, requests, outcomes))
            except (errors.CatalogUnavailable, MemoryError) as problem:
                cause = problem
                self._closed.wait(RETRY_S)
        ids = ", ".join(request.commit_id.hex() for request in requests)
        raise errors.UnknownCommitOutcome(commit_id=ids, detail=str(cause)) from cause

    def _final(self, request: CommitRequest, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Committed):
            return outcome
        return self.outcome(request.commit_id) or outcome

    def _extend_partitions(self, head: int) -> None:
        """Creates partitions ahead of the log, so that no commit has to."""
        if head + PARTITION_SPAN >= self._partitioned:
            upto = head + 2 * PARTITION_SPAN
            self._partitioned = self._known(_ADD_PARTITIONS, upto, PARTITION_SPAN)

    def outcome(self, commit_id: CommitId) -> Committed | None:
        return self._pool.run(lambda db: send_outcome(db, commit_id))

    def head(self) -> Seq:
        return Seq(self._known(_HEAD))

    def floor(self) -> Seq:
        return Seq(self._known(_FLOOR))

    def follow(self, epoch: Epoch, after: Seq, upto: Seq | None = None) -> tuple[LogEntry, ...]:
        return self._pool.run(lambda db: read.read_entries(db, epoch, after, upto))

    def first_reliance(self, epoch: Epoch, keys: Sequence[KeyHash], after: Seq) -> Seq | None:
        return self._pool.run(lambda db: read.read_first_reliance(db, epoch, keys, after))

    def first_violation(self, keys: Sequence[KeyHash], after: Seq) -> RecordedViolation | None:
        return self._pool.run(lambda db: read.read_first_violation(db, keys, after))

    def watch(self) -> DescriptorWatch:
        return DescriptorWatch(self.url, self._pool.pids)

    def take_locks(
        self,
        epoch: Epoch,
        owner: LockOwner,
        wishes: Sequence[LockWish],
        policy: LockPolicy,
        most: int,
    ) -> LocksTaken:
        return self._pool.run(lambda db: locks.send_wishes(db, epoch, owner, wishes, policy, most))

    def release_locks(self, epoch: Epoch, owner: LockOwner, keys: Sequence[KeyHash] | None = None) -> None:
        self._pool.run(lambda db: locks.release_locks(db, epoch, owner, keys))

    def release_scopes(self, epoch: Epoch, actor: int, scopes: Sequence[int]) -> None:
        self._pool.run(lambda db: locks.release_scopes(db, epoch, actor, scopes))

    def enter_queue(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> None:
        self._pool.run(lambda db: locks.enter_queue(db, epoch, owner, wish))

    def serve_first(self, wait: LockWait) -> None:
        self._pool.run(lambda db: locks.serve_first(db, wait))

    def lock_queues(self) -> LockQueues:
        return self._pool.run(locks.read_queues)

    def request_lock(self, epoch: Epoch, owner: LockOwner, wish: LockWish) -> int:
        return self._pool.run(lambda db: locks.request_lock(db, epoch, owner, wish))

    def answer_requests(self, epoch: Epoch, upto: int, held: Sequence[tuple[LockOwner, LockWish]] = ()) -> None:
        self._pool.run(lambda db: locks.answer_requests(db, epoch, upto, held))

    def table_locks(self) -> CatalogTableLocks:
        return self._pool.run(locks.read_table_locks)

    def sequence_at(self, timestamp_us: int) -> Seq:
        return Seq(self._known(_SEQUENCE_AT, timestamp_us))

    def allocate_ids(self, count: int) -> range:
        first = self._known(_ALLOCATE, count, count)
        return range(first, first + count)

    def draw_sequence(self, id_: DescriptorId, run: int, limits: SequenceLimits, count: int) -> SequenceBlock:
        return self._pool.run(lambda db: draw_sequence(db, id_, run, limits, count))

    def set_sequence(self, id_: DescriptorId, run: int, state: SequenceState) -> None:
        self._pool.run(lambda db: write_sequence(db, id_, run, state))

    def move_sequence(self, id_: DescriptorId, run: int, expected: SequenceState, state: SequenceState) -> bool:
        return self._pool.run(lambda db: move_sequence(db, id_, run, expected, state))

    def reserve_segments(self, epoch: Epoch, count: int) -> range:
        first = self._number(_RESERVE, epoch, count)
        if first is None:
            raise errors.StaleNode(node=epoch)
        return range(first, first + count)

    def abandon_segments(self, epoch: Epoch, ids: Sequence[SegmentId]) -> None:
        self._do(_ABANDON, epoch, Bigints(ids))

    def collect(self, epoch: Epoch, retention_us: int) -> tuple[SegmentId, ...]:
        floor = self._number(_RAISE_FLOOR, epoch, retention_us, BURNED_KEPT_US)
        if floor is None:
            raise errors.StaleNode(node=epoch)
        self._pool.run(locks.forget_dead)
        self._pool.run(jobs.forget_old)
        self._pool.run(partial(remove_log, floor=floor))
        self._pool.run(drop_partitions)
        return self._pool.run(read_garbage)

    def forget_files(self, ids: Sequence[SegmentId]) -> None:
        self._do(_FORGET_FILES, Bigints(ids))

    def record_export(self, epoch: Epoch, record: ExportRecord) -> None:
        floor = self._number(_RECORD_EXPORT, epoch, *astuple(record))
        check_snapshot(epoch, record.held, None if floor is None else (floor, True))

    def forget_exports(self, epoch: Epoch, table_id: TableId, snapshots: Sequence[int]) -> None:
        if not self._number(_FORGET_EXPORTS, epoch, table_id, Bigints(snapshots)):
            raise errors.StaleNode(node=epoch)

    def create_feed(self, record: FeedRecord) -> bool:
        tables = " ".join(map(str, record.tables))
        place = (record.database, record.name, record.owner, tables)
        refused = self._number(_CREATE_FEED, *place, record.position, record.created_us)
        if refused:
            raise errors.FeedTooOld(since=record.position, floor=refused)
        return refused is None

    def advance_feed(self, database: str, name: str, position: Seq) -> None:
        self._do(_ADVANCE_FEED, position, database, name)

    def end_feed(self, database: str, name: str, reason: str) -> None:
        self._do(_END_FEED, reason, database, name)

    def drop_feed(self, database: str, name: str) -> None:
        self._do(_DROP_FEED, database, name)

    def _written_inline(self, index_id: IndexId, after: Seq) -> Row:
        return self._rows(_WRITTEN_INLINE, index_id, after)[0]

    def copy_to(self, folder: Path) -> Seq:
        return self._pool.attempt(lambda db: copy_catalog(db, folder))

    def fill_from(self, folder: Path, identity: str) -> None:
        """Fills the catalog from a copy, as another database; raises InvalidCatalog unless this one was never used."""
        self._pool.attempt(lambda db: fill_catalog(db, self.url, folder, identity))

    def claim(self, epoch: Epoch, resource: str) -> bool:
        (held,) = self._row(_CLAIM, epoch, resource)
        if held is None:
            raise errors.StaleNode(node=epoch)
        return bool(held)

    def release(self, epoch: Epoch, resource: str) -> None:
        self._do(_RELEASE, resource, epoch)

    def new_job_id(self) -> JobId:
        return self._pool.run(jobs.take_id)

    def request_job(self, job_id: JobId, request: JobRequest) -> bool:
        return self._pool.run(lambda db: jobs.ask(db, job_id, request))

    def cancel_job(self, job_id: JobId, expected: int) -> bool:
        return self._pool.run(lambda db: jobs.cancel(db, job_id, expected))

    def log_event(self, text: str, job_id: JobId = NO_JOB) -> None:
        self._pool.run(lambda db: jobs.log_event(db, job_id, text))
