"""The state of a node under one epoch.

When an epoch ends (the process slept past its expiry) all of it is discarded and read again under a new one: the files
behind it may be gone.

**Invariant:** `applied` is the last sequence whose descriptors, keys and rows are all in `schemas`, `conflicts` and
`images`; the three move together under `lock`.

**Invariant:** state whose change was cut short, by missing memory or Ctrl-C, is neither shown nor changed any more: the
node starts a new epoch and reads it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.locks.contention import Contention
from seachange.engine.locks.key_locks import LockTable
from seachange.engine.locks.local_waits import LocalWaits
from seachange.engine.locks.lock_details import describe_key
from seachange.engine.locks.shared_locks import SharedLocks
from seachange.engine.locks.table_locks import NodeTableLocks
from seachange.engine.replica.committer import GroupCommitter, Submission
from seachange.engine.replica.conflicts import ConflictMap
from seachange.engine.replica.images import Images
from seachange.engine.replica.registry import Registry
from seachange.engine.replica.schema_history import SchemaHistory, SchemaVersion, schema_of
from seachange.model.codecs.descriptor_json import decode_descriptor
from seachange.model.ids import DescriptorId, Epoch, KeyHash, Seq
from seachange.model.log import CommitRequest, Committed, LogEntry
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import PublishedDescriptor
from seachange.planner.rules.release import CURRENT
from seachange.runtime.clock import Clock
from seachange.runtime.nonblocking import Holding, WouldWait, may_wait
from seachange.storage.image import IndexImage
from seachange.storage.keys import change_hash, job_hash, table_hash
from seachange.storage.warehouse import Warehouse


class EpochState:
    def __init__(
        self,
        catalog: Catalog,
        warehouse: Warehouse,
        name: str,
        expiry_ms: int,
        clock: Clock,
        notify: Callable[[], None],
        release: int = CURRENT.number,
    ) -> None:
        """`notify` is called when another node may be waiting for the marks; `release` is that of the newest rules
        known."""
        self.catalog = catalog
        self.clock = clock
        # The send time of the last heartbeat that the catalog accepted.
        self.beaten_us = clock.steady_us()
        self.epoch: Epoch = catalog.register_node(name, expiry_ms, release)
        self._release, self._agreed = release, 0
        self.lock = threading.RLock()
        self._looks = 0
        # Set when a StaleNode error is seen, so that the next transaction begins in a new epoch without waiting for a
        # heartbeat.
        self.ended = False
        # Whether a change of this state was cut short.
        self.is_torn = False
        self.applied: Seq = catalog.head()
        self.schemas = SchemaHistory(self._schema_at(self.applied))
        self.conflicts = ConflictMap()
        self.contention = Contention(clock)
        self.images = Images(catalog, self.epoch, warehouse)
        self.registry = Registry(self.applied, notify, warehouse.files.uses)
        self.locks = LockTable(self.epoch, self.describe_key, self.give_up)
        self.shared = SharedLocks(catalog, self.epoch, self.locks, clock, self.describe_key)
        self.tables = NodeTableLocks(catalog, self.epoch, self.shared)
        self.local_waits = LocalWaits(catalog, self.epoch, self.shared, self.tables)
        self.committer = GroupCommitter(catalog, self.epoch, clock, self._apply_own)
        # Before the first transaction: a lock may have been requested before this node was registered.
        self.tables.refresh()

    @property
    def release(self) -> int:
        """The release of the planning rules: all nodes know them, for as long as this epoch lives."""
        if self._agreed != self._release:
            # Nodes of an older release may have gone since.
            self._agreed = self.catalog.agree_release(self._release)
        return self._agreed

    def describe_key(self, key: KeyHash) -> str:
        """The object that a lock is on, as far as the key allows it."""
        for table in self.schemas.newest.by_id.values():
            if key == table_hash(table.id):
                return f'relation "{table.name}"'
            if key == change_hash(table.id):
                return f'the definition of relation "{table.name}"'
        jobs = (record.id for record in self.catalog.jobs(unfinished=True))
        return next((f"job {id_}" for id_ in jobs if key == job_hash(id_)), describe_key(key))

    def noticing_end(self) -> NoticingEnd:
        return NoticingEnd(self)

    # The past.

    def _schema_at(self, seq: Seq) -> SchemaVersion:
        published = self.catalog.descriptors(self.epoch, seq)
        return schema_of(seq, [d.body for d in published if d.body is not None])

    def schema(self, snapshot: Seq) -> SchemaVersion:
        if snapshot >= self.schemas.oldest_seq:
            return self.schemas.at(snapshot)
        return self._schema_at(snapshot)

    def give_up(self) -> None:
        """A change of the state was cut short. Without memory, this needs none."""
        self.is_torn = self.ended = True

    def image(self, table: Table, index: Index, snapshot: Seq) -> IndexImage:
        if self.is_torn:
            raise errors.StaleNode(node=self.epoch)
        image = self.images.current(index.id, snapshot)
        if image is not None:
            return image
        may_wait()
        with self.lock, self.noticing_end():
            return self.images.current(index.id, snapshot) or self._load(table, index, snapshot)

    def _load(self, table: Table, index: Index, snapshot: Seq) -> IndexImage:
        newest = self.schemas.newest.by_id.get(table.id)
        is_loaded = self.images.current(index.id, self.applied) is not None
        if newest is not None and index.id in newest.index_by_id and not is_loaded:
            image = self._load_newest(newest, newest.index_by_id[index.id], snapshot)
            if image is not None and image.base <= snapshot:
                return image
        # The newest version knows all layouts, but not an index that has been dropped.
        knows = newest is not None and index.id in newest.index_by_id
        return self.images.load_past(newest if newest is not None and knows else table, index, snapshot)

    def _load_newest(self, table: Table, index: Index, snapshot: Seq) -> IndexImage | None:
        """None if the newest image is damaged: an earlier snapshot may still be readable."""
        try:
            return self.images.load(table, index, self.applied)
        except errors.InlineRowsDamaged:
            if snapshot >= self.applied:
                raise
            return None

    # Following the log.

    def catch_up(self) -> Seq:
        """Applies what others have committed; returns the applied sequence.

        A thread that waited for the lock while another read of the log began and ended need not read it again.
        """
        begun = self._looks
        with Holding(self.lock):
            if self.is_torn:
                raise errors.StaleNode(node=self.epoch)
            if self._looks > begun:
                return self.applied
            self._looks += 1
            try:
                for entry in self.catalog.follow(self.epoch, self.applied):
                    self._apply(entry)
            except BaseException as problem:
                # Threads that waited must read the log themselves.
                self._looks -= 1
                self._check_whole(problem)
                raise
            self.registry.advance(self.applied)
            return self.applied

    def _check_whole(self, problem: BaseException) -> None:
        """After an error of the catalog an entry can be applied again. Anything else comes between any two steps."""
        if not isinstance(problem, errors.Error | WouldWait):
            self.give_up()

    def _apply(self, entry: LogEntry) -> None:
        if entry.descriptors:
            self.schemas.apply(entry.seq, entry.descriptors)
            self.registry.note_publication(entry.seq)
        self.conflicts.add(entry)
        self.contention.learn(entry.commit_id, entry.writes, entry.touched)
        self.images.apply(entry)
        self.applied = entry.seq

    def _apply_own(self, batch: Sequence[Submission]) -> None:
        """Applies the batch's commits from memory, or follows the log where others have committed in between."""
        committed = [(m.outcome.seq, m) for m in batch if isinstance(m.outcome, Committed)]
        if not committed:
            return
        with self.lock:
            for seq, member in committed:
                simple = not member.request.generations and not member.request.segments
                if seq != self.applied + 1 or not simple or self.is_torn:
                    self.catch_up()
                    return
                assert isinstance(member.outcome, Committed)
                try:
                    self._apply_member(member, member.outcome)
                except BaseException as problem:
                    self._check_whole(problem)
                    raise
            self.registry.advance(self.applied)

    def _apply_member(self, member: Submission, outcome: Committed) -> None:
        entry = _entry(member.request, outcome)
        if entry.descriptors:
            self.schemas.apply(entry.seq, entry.descriptors)
            # Only jobs wait for writers of older versions.
            if member.request.jobs:
                self.registry.note_publication(entry.seq)
            for descriptor in entry.descriptors:
                if isinstance(descriptor.body, Table):
                    self.images.learn(descriptor.body)
        self.conflicts.add(entry)
        self.contention.learn(entry.commit_id, entry.writes, entry.touched)
        for local in member.local:
            self.images.add_local(local.index_id, entry.seq, local.layout_id, local.ops, local.rows)
        self.applied = entry.seq

    def housekeeping(self, mark: Seq) -> None:
        with self.lock:
            self.conflicts.prune(mark)
            self.images.drop_below(mark, self.schemas.at(mark), self.schemas.newest)
            self.schemas.forget_below(mark)


class NoticingEnd:
    """Around calls of the catalog: an error says that the epoch has ended."""

    __slots__ = ("_epoch",)

    def __init__(self, epoch: EpochState) -> None:
        self._epoch = epoch

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, errors.StaleNode):
            self._epoch.ended = True


def _entry(request: CommitRequest, outcome: Committed) -> LogEntry:
    return LogEntry(
        seq=outcome.seq,
        timestamp_us=outcome.timestamp_us,
        commit_id=request.commit_id,
        writes=request.writes,
        shares=request.shares,
        bulk=request.bulk,
        touched=request.touched,
        batches=request.batches,
        segments=(),
        descriptors=tuple(
            PublishedDescriptor(DescriptorId(d.id), d.version, None if d.body is None else decode_descriptor(d.body))
            for d in request.descriptors
        ),
        generations=(),
    )
