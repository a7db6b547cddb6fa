"""The write locks of a transaction: keys are locked, then checked for changes since its snapshot, then written.

At READ COMMITTED a statement that finds a changed row is run again on the newest version; nothing is in the buffer yet.
Keys that other nodes write too (`engine/locks/contention.py`) are also locked through the catalog; a statement that
changes many rows of a table locks them there with one lock.

**Invariant:** keys are locked before they are checked and checked before anything is buffered, so a writer that waited
for another sees what that one committed.

**Invariant:** a transaction without contended keys that changes few rows takes no lock through the catalog, unless its
client gets rows that may depend on a change of a table to which other nodes write, or it has changed a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.lock_scopes import LockScopes
from seachange.engine.buffer.row_locks import ChangedRow, WriteLock
from seachange.engine.buffer.table_holds import TableHolds
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.replica.epoch import EpochState
from seachange.model.ids import KeyHash, Seq, TableId
from seachange.model.jobs import JobId
from seachange.model.locking import (
    NO_GUARD,
    LockMode,
    LockOwner,
    LockPolicy,
    LockStrength,
    LockWish,
    QueueMode,
)
from seachange.model.schema.descriptor import Table
from seachange.storage.keys import job_hash, rows_hash, table_hash

Row = tuple[Any, ...]

# A statement that writes more rows than this takes no locks on single rows.
LOCKED_ROWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class LockedRow:
    """A row that was locked by its primary key, in a version of its table, as of `snapshot`."""

    table: Table
    key: Row
    strength: LockStrength
    snapshot: Seq


@dataclass(frozen=True, slots=True)
class WriteLocksMark:
    """The number of scopes, and of keys declared as written, at a savepoint."""

    scopes: int
    writes: int


@dataclass(frozen=True, slots=True)
class StepMark:
    """The number of implicitly locked keys, and of keys declared as written, before a statement of a block."""

    keys: int
    writes: int


class WriteLocks:
    """The locks of one transaction; `ticket` is its number in the registry."""

    def __init__(
        self,
        epoch: EpochState,
        ticket: int,
        client: SessionContext,
        statement: CurrentStatement,
        shares: dict[KeyHash, Seq],
        is_shared: bool,
    ) -> None:
        self.epoch = epoch
        self.held = LockScopes(epoch, ticket, client, statement)
        self.tables = TableHolds(self.held)
        # What the commit declares for rows that were locked but may not be written, with the snapshot of each. The
        # shares are a dictionary of the transaction, which adds others to it.
        self.writes: dict[KeyHash, Seq] = {}
        self._shares = shares
        # Keys that statements have locked in order to write them, in order, with their tables; keys that a statement
        # locked explicitly; and the keys of the first kind that are locked through the catalog, with the locks' owners.
        self._implied: dict[KeyHash, TableId] = {}
        self._explicit: set[KeyHash] = set()
        self._shared_keys: dict[KeyHash, LockOwner] = {}
        # Rows that were changed and are not locked through the catalog, by the keys of their locks.
        self._unlocked: dict[KeyHash, ChangedRow] = {}
        self._is_shown = False
        # The keys that lock all rows of a table.
        self._many: set[KeyHash] = set()
        # After a conflict a transaction locks every key that it writes for all nodes.
        self.is_shared = is_shared
        # The keys that met a conflict at COMMIT.
        self.met: dict[KeyHash, Seq] = {}
        self._awaited: KeyHash | None = None

    @property
    def owner(self) -> LockOwner:
        return self.held.owner

    def begin_statement(self, is_shown: bool) -> None:
        """`is_shown`: the client gets rows of it that depend on what it changes."""
        self._is_shown = is_shown

    def share_all(self) -> None:
        """From now on every key that is written is locked for all nodes."""
        self.is_shared = True

    # Savepoints.

    def begin_scope(self) -> WriteLocksMark:
        """Locks that are taken from now on are released by `back_to`."""
        return WriteLocksMark(self.held.begin(), len(self.writes))

    def back_to(self, mark: WriteLocksMark) -> None:
        gone = self.held.cut(mark.scopes)
        self._forget_keys({owner for scope in gone for owner in scope.owners})
        self.tables.reset()
        while len(self.writes) > mark.writes:
            self.writes.popitem()
        self.held.release(gone)

    def _forget_keys(self, gone: Set[LockOwner]) -> None:
        """A lock that ends with its scope is not released again: what is taken for a scope from now on would stay."""
        self._shared_keys = {key: owner for key, owner in self._shared_keys.items() if owner not in gone}
        self._unlocked = {key: row for key, row in self._unlocked.items() if row.owner not in gone}
        self._many.clear()

    # Keys.

    def take(self, write_locks: Sequence[WriteLock], snapshot: Seq, table: Table, changes: bool = True) -> None:
        """Waits for the keys; raises RowChanged if one of them was written since `snapshot`. `changes`: existing rows
        are changed."""
        if not self.held.waits:
            return
        unlocked: Sequence[WriteLock] = ()
        if len(write_locks) <= LOCKED_ROWS_MAX:
            for write_lock in write_locks:
                self._acquire(write_lock, LockPolicy.WAIT)
                self._implied.setdefault(write_lock.lock, table.id)
            locked = self._take_contended(write_locks, table, changes)
            unlocked = [write_lock for write_lock in write_locks if changes and write_lock.lock not in locked]
        self.check(write_locks, snapshot)
        # Of a statement that is run again now, nothing is changed yet.
        self._note_unlocked(unlocked, table, snapshot)

    def _note_unlocked(self, write_locks: Iterable[WriteLock], table: Table, snapshot: Seq) -> None:
        for write_lock in write_locks:
            if write_lock.lock not in self._shared_keys:
                self._unlocked.setdefault(write_lock.lock, ChangedRow(write_lock, table, snapshot, self.owner))

    def _note_shared(self, keys: Iterable[KeyHash], owner: LockOwner) -> None:
        for key in keys:
            self._shared_keys.setdefault(key, owner)

    def _take_contended(self, write_locks: Sequence[WriteLock], table: Table, changes: bool) -> Set[KeyHash]:
        """The second writer of a contended key waits for the first, whatever nodes they are in. Gives what is locked
        for all nodes."""
        contention, table_id = self.epoch.contention, table.id
        if self.is_shared or (changes and self._is_shown and contention.is_written_elsewhere(table.primary.id)):
            wanted = {write_lock.lock for write_lock in write_locks}
        elif contention.is_quiet:
            return frozenset()
        else:
            wanted = contention.pick(table_id, (write_lock.lock for write_lock in write_locks))
        wishes = [write_lock.wish for write_lock in write_locks if write_lock.lock in wanted]
        if wishes:
            self._note_shared(wanted, self.owner)
            if changes:
                wishes.insert(0, self._wish_of_some(table_id, self.owner))
            waits = self.epoch.shared.waits
            self.held.take(self.owner, wishes, LockPolicy.WAIT)
            if self.epoch.shared.waits != waits:
                contention.note((key, table_id) for key in wanted)
        return wanted

    def secure(self, policy: LockPolicy, everywhere: bool = False) -> dict[KeyHash, Seq]:
        """Locks for all nodes what the transaction has changed in tables to which other nodes write, or `everywhere`.
        Gives the keys that others have changed since, or hold if the policy is not to wait."""
        contention, rows = self.epoch.contention, self._unlocked.values()
        wanted = [row for row in rows if everywhere or contention.is_written_elsewhere(row.table.primary.id)]
        met: dict[KeyHash, Seq] = {}
        for owner in dict.fromkeys(row.owner for row in wanted):
            met |= self._secure_rows(owner, [row for row in wanted if row.owner == owner], policy)
        return met

    def _secure_rows(self, owner: LockOwner, rows: Sequence[ChangedRow], policy: LockPolicy) -> dict[KeyHash, Seq]:
        wishes: dict[LockWish, KeyHash] = {}
        for row in rows:
            wishes.setdefault(self._wish_of_some(row.table.id, owner), row.write_lock.lock)
            wishes[row.write_lock.wish] = row.write_lock.lock
            self._note_shared([row.write_lock.lock], owner)
            del self._unlocked[row.write_lock.lock]
        for scope in self.held.scopes:
            scope.is_shared |= scope.owner == owner
        asked = list(wishes)
        taken = self.epoch.shared.take(owner, asked, policy, self.held.interrupts, self.held.timeout_ms)
        head = self.epoch.catch_up() if taken.head > self.epoch.applied else taken.head
        keys = {key: r.since for r in rows for key in (r.write_lock.lock, r.write_lock.also) if key is not None}
        with self.epoch.lock:
            met = self.epoch.conflicts.find_all(keys, {})
        if not all(taken.granted):
            met.setdefault(wishes[asked[len(taken.granted) - 1]], head)
        return met

    def _wish_of_some(self, table_id: TableId, owner: LockOwner) -> LockWish:
        """The table's row lock in shared mode, requested before the rows and in the same call: it orders this
        transaction against one that changes many rows of the table, so that neither waits for the other at its
        commit."""
        key = rows_hash(table_id)
        if key not in self._implied:
            self._implied[key] = table_id
            self._note_shared([key], owner)
        return LockWish(key, LockStrength.SHARE, key)

    def take_rows(self, table_id: TableId) -> bool:
        """Locks all rows of a table before many of them are changed: other updates and deletes wait until this
        transaction ends instead of making it fail. Readers and inserts do not wait. Returns False if the lock was held
        already."""
        key = rows_hash(table_id)
        if not self.held.waits or key in self._many:
            return False
        self._implied.setdefault(key, table_id)
        self._note_shared([key], self.owner)
        self.held.take(self.owner, [LockWish(key, LockStrength.NO_KEY_UPDATE, key)], LockPolicy.WAIT)
        self._many.add(key)
        return True

    def _acquire(self, write_lock: WriteLock, policy: LockPolicy) -> bool:
        locks = self.epoch.locks
        self.held.scopes[-1].is_used = True
        limits = self.held.timeout_ms, self.held.interrupts, self.epoch.local_waits
        return locks.acquire(self.owner, write_lock.lock, write_lock.strength, policy, *limits)

    # Resuming at an earlier statement.

    @property
    def implied(self) -> Iterable[KeyHash]:
        """The keys that statements have locked in order to write them, in order (`StepMark.keys`)."""
        return self._implied

    def mark(self) -> StepMark:
        return StepMark(len(self._implied), len(self.writes))

    def note_conflicts(self, met: Mapping[KeyHash, Seq]) -> None:
        """Records the keys because of which the commit was refused."""
        self.met = dict(met)
        self.is_shared = True
        if self.held.waits:
            self.epoch.contention.note((key, self._implied.get(key)) for key in met)

    def go_back(self, mark: StepMark, step: StepMark) -> None:
        """Releases the locks that statements from `mark` on took by writing, so that they can be taken in order again.
        A key of the statement that ends at `step` for which the transaction waited at COMMIT stays locked: it is the
        first to be locked again anyway."""
        keys = list(self._implied)
        kept = {self._awaited} if self._awaited in keys[mark.keys : step.keys] else set()
        self._give_up([key for key in keys[mark.keys :] if key not in kept])
        for key in keys[mark.keys :]:
            del self._implied[key]
            self._unlocked.pop(key, None)
        while len(self.writes) > mark.writes:
            self.writes.popitem()
        self.met, self._awaited = {}, None

    def _give_up(self, keys: Iterable[KeyHash]) -> None:
        released = [key for key in keys if key not in self._explicit]
        shared = [key for key in released if key in self._shared_keys]
        for key in shared:
            del self._shared_keys[key]
        for key in released:
            self._unlocked.pop(key, None)
        self._many.difference_update(shared)
        for scope in self.held.scopes:
            for key in released:
                self.epoch.locks.release(scope.owner, key)
            if shared and scope.is_shared:
                self.epoch.shared.release_keys(scope.owner, shared)

    def check(self, write_locks: Iterable[WriteLock], snapshot: Seq) -> None:
        self.check_keys(
            {
                key: snapshot
                for write_lock in write_locks
                for key in (write_lock.lock, write_lock.also)
                if key is not None
            }
        )

    def check_keys(self, bases: Mapping[KeyHash, Seq]) -> None:
        """Raises RowChanged if a key was written since its base."""
        changed = self.epoch.conflicts.find(bases, {})
        if changed is not None:
            raise errors.RowChanged(seq=changed)

    def lock(
        self,
        write_locks: Sequence[WriteLock],
        policy: LockPolicy,
        most: int | None = None,
        table_id: TableId | None = None,
    ) -> list[bool]:
        """Locks rows that are read, of a table, or other keys, for all nodes. Returns which of them were locked, since
        the policy may skip some."""
        if not self.held.waits or not write_locks:
            return [True] * len(write_locks)
        self._explicit.update(write_lock.lock for write_lock in write_locks)
        if policy is LockPolicy.SKIP:
            return self._lock_free(write_locks, len(write_locks) if most is None else most)
        for write_lock in write_locks:
            self._acquire(write_lock, policy)
        some = [self._wish_of_some(table_id, self.owner)] if table_id is not None and policy is LockPolicy.WAIT else []
        self.held.take(self.owner, [*some, *(write_lock.wish for write_lock in write_locks)], policy)
        return [True] * len(write_locks)

    def _lock_free(self, write_locks: Sequence[WriteLock], most: int) -> list[bool]:
        """SKIP LOCKED never waits, so the catalog decides first: it is asked once for all keys that are free in this
        node."""
        taken = [False] * len(write_locks)
        locks = self.epoch.locks
        free = [n for n, c in enumerate(write_locks) if locks.is_free(self.owner, c.lock, c.strength)]
        while free and sum(taken) < most:
            wishes = [write_locks[n].wish for n in free]
            granted = self.held.take(self.owner, wishes, LockPolicy.SKIP, most - sum(taken))
            for n, is_granted in zip(free, granted, strict=False):
                taken[n] = is_granted and self._acquire(write_locks[n], LockPolicy.SKIP)
            free = free[len(granted) :]
        return taken

    def run_job(self, job_id: JobId) -> None:
        """The transaction begins a job that others may wait for."""
        self.held.take(self.owner, [LockWish(job_hash(job_id), QueueMode.RUNS, NO_GUARD)], LockPolicy.WAIT)

    def wait_for(self, key: KeyHash, strength: LockMode, resumes: bool) -> None:
        """Waits for a lock of another transaction that blocks the commit. A transaction that `resumes` first
        releases the implicit locks that it has taken after this key, so that it cannot be part of a deadlock: those
        before it may be what the client's results depend on. It keeps the key itself within the node: another
        transaction that got it there would wait behind this one between nodes, and this one for it."""
        if resumes:
            self._give_up(list(self._implied)[self._count_until(key) :])
        self._awaited = key
        self._note_shared([key], self.owner)
        if self.held.waits and key in self._implied:
            self.epoch.contention.note([(key, self._implied[key])])
        self.held.take(self.owner, [LockWish(key, strength, key)], LockPolicy.WAIT)

    def _count_until(self, key: KeyHash) -> int:
        """How many implicit locks were taken until this one, or before the first one in the table that the key locks;
        all, if it is neither."""
        for place, (each, table_id) in enumerate(self._implied.items()):
            if each == key:
                return place + 1
            if key in (rows_hash(table_id), table_hash(table_id)):
                return place
        return len(self._implied)

    def declare(self, write_locks: Sequence[WriteLock], snapshot: Seq) -> None:
        """Makes locked rows part of the commit, so that a write which ignored the lock is a conflict; raises RowChanged
        if there was one since `snapshot`."""
        writes = {key: snapshot for write_lock in write_locks for key in write_lock.written}
        shares = {key: snapshot for write_lock in write_locks for key in write_lock.shared}
        changed = self.epoch.conflicts.find(writes, shares)
        if changed is not None:
            raise errors.RowChanged(seq=changed)
        # A key that an earlier statement relied on keeps its older snapshot.
        for key in writes:
            self.writes.setdefault(key, snapshot)
        for key in shares:
            self._shares.setdefault(key, snapshot)

    def release(self) -> None:
        self.held.release(self.held.scopes)
