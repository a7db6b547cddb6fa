"""What a transaction claims before it writes: locks on the keys, and that nobody changed them since its snapshot.

At READ COMMITTED a statement that meets a changed row is run again on the newest version; nothing is in the buffer yet.

**Invariant:** keys are locked before they are checked and checked before anything is buffered, so a writer that waited
for another sees what that one committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.buffer import WriteBuffer
from seachange.engine.client import Client
from seachange.engine.epoch import EpochState
from seachange.engine.writeplan import EntryPlan, WritePlan
from seachange.model.descriptor import Table
from seachange.model.ids import KeyHash, Seq
from seachange.model.locking import LockMode, LockOwner, LockPolicy, LockStrength, LockWish
from seachange.storage.keys import entry_hash, unique_hash

Row = tuple[Any, ...]

# A statement that writes more rows than this takes no locks: whoever meets one of them finds out at commit.
LOCKED_ROWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Claim:
    """`lock` is the key that others wait for; the commit checks `also` too."""

    lock: KeyHash
    strength: LockStrength
    also: KeyHash | None = None

    @property
    def wish(self) -> LockWish:
        """The lock between nodes. Who shares a key minds only that it stays."""
        guard = self.also if self.strength is LockStrength.KEY_SHARE else None
        return LockWish(self.lock, self.strength, self.lock if guard is None else guard)

    @property
    def written(self) -> Iterator[KeyHash]:
        """What the commit of a locked row declares as written: others that rely on it conflict."""
        if self.strength >= LockStrength.NO_KEY_UPDATE:
            yield self.lock
        if self.strength is LockStrength.UPDATE and self.also is not None:
            yield self.also

    @property
    def shared(self) -> Iterator[KeyHash]:
        """What it declares as relied upon: the row, or its key only."""
        if self.strength is LockStrength.SHARE:
            yield self.lock
        if self.strength is LockStrength.KEY_SHARE and self.also is not None:
            yield self.also


@dataclass(frozen=True, slots=True)
class LockedRow:
    """A row that was locked by its primary key in a version of its table, as of `snapshot`."""

    table: Table
    key: Row
    strength: LockStrength
    snapshot: Seq


class Claims:
    """The locks of one transaction; `ticket` is its place in the registry."""

    def __init__(self, epoch: EpochState, ticket: int, client: Client, shares: dict[KeyHash, Seq]) -> None:
        self.epoch = epoch
        self.owner = LockOwner(client.actor, ticket)
        self._interrupts = client.interrupts
        # Whether there is something to give up in the catalog.
        self._has_shared = False
        # A session waits, and runs a statement again. Whoever drives a transaction by hand hears of it at commit.
        self.waits = False
        self.timeout_ms = 0
        # Of rows that were locked and may not be written at all: what the commit declares, and since when. The shares
        # are the transaction's own, which has others too.
        self.writes: dict[KeyHash, Seq] = {}
        self._shares = shares

    def take(self, claims: Sequence[Claim], snapshot: Seq) -> None:
        """Waits for the keys; raises RowChanged if one of them was written since `snapshot`."""
        if not self.waits:
            return
        if len(claims) <= LOCKED_ROWS_MAX:
            for claim in claims:
                self._acquire(claim, LockPolicy.WAIT)
        self.check(claims, snapshot)

    def _acquire(self, claim: Claim, policy: LockPolicy) -> bool:
        locks = self.epoch.locks
        return locks.acquire(self.owner, claim.lock, claim.strength, policy, self.timeout_ms, self._interrupts)

    def check(self, claims: Iterable[Claim], snapshot: Seq) -> None:
        keys = {key: snapshot for claim in claims for key in (claim.lock, claim.also) if key is not None}
        changed = self.epoch.conflicts.find(keys, {})
        if changed is not None:
            raise errors.RowChanged(seq=changed)

    def lock(self, claims: Sequence[Claim], policy: LockPolicy, most: int | None = None) -> list[bool]:
        """Locks rows that are to be read, for all nodes; says which of them, as the policy may leave some out."""
        if not self.waits or not claims:
            return [True] * len(claims)
        if policy is LockPolicy.SKIP:
            return self._lock_free(claims, len(claims) if most is None else most)
        for claim in claims:
            self._acquire(claim, policy)
        self._take_shared(self.owner, [claim.wish for claim in claims], policy)
        return [True] * len(claims)

    def _lock_free(self, claims: Sequence[Claim], most: int) -> list[bool]:
        """Nothing waits here, so the catalog chooses first: it is asked once about all that are free in the node."""
        taken = [False] * len(claims)
        locks = self.epoch.locks
        free = [n for n, c in enumerate(claims) if locks.is_free(self.owner, c.lock, c.strength)]
        while free and sum(taken) < most:
            wishes = [claims[n].wish for n in free]
            granted = self._take_shared(self.owner, wishes, LockPolicy.SKIP, most - sum(taken))
            for n, is_granted in zip(free, granted, strict=False):
                taken[n] = is_granted and self._acquire(claims[n], LockPolicy.SKIP)
            free = free[len(granted) :]
        return taken

    def take_shared(self, owner: LockOwner, wish: LockWish, policy: LockPolicy) -> bool:
        """A lock that is not about a row: inside the node, then between nodes; what is refused is not held."""
        locks = self.epoch.locks
        held = locks.holds(owner, wish.key)
        if not locks.acquire(owner, wish.key, wish.strength, policy, self.timeout_ms, self._interrupts):
            return False
        granted = False
        try:
            (granted,) = self._take_shared(owner, [wish], policy)
        finally:
            if not granted and not held:
                locks.release(owner, wish.key)
        return granted

    def wait_for(self, key: KeyHash, strength: LockMode) -> None:
        """Another's lock stands against the commit: takes it in turn."""
        self._take_shared(self.owner, [LockWish(key, strength, key)], LockPolicy.WAIT)

    def _take_shared(
        self, owner: LockOwner, wishes: Sequence[LockWish], policy: LockPolicy, most: int | None = None
    ) -> Sequence[bool]:
        self._has_shared = self._has_shared or owner == self.owner
        taken = self.epoch.shared.take(owner, wishes, policy, self._interrupts, self.timeout_ms, most)
        if policy is LockPolicy.NOWAIT and not all(taken.granted):
            raise errors.LockNotAvailable(detail="a transaction of another node holds it")
        # Keys are locked before they are checked: whatever was committed before the grant has to be known by then.
        if taken.head > self.epoch.applied:
            self.epoch.catch_up()
        return taken.granted

    def declare(self, claims: Sequence[Claim], snapshot: Seq) -> None:
        """Makes locked rows part of the commit, so that a change by whoever did not heed the lock is a conflict;
        raises RowChanged if there was one since `snapshot`."""
        writes = {key: snapshot for claim in claims for key in claim.written}
        shares = {key: snapshot for claim in claims for key in claim.shared}
        changed = self.epoch.conflicts.find(writes, shares)
        if changed is not None:
            raise errors.RowChanged(seq=changed)
        # What an earlier statement relied on counts from there.
        for key in writes:
            self.writes.setdefault(key, snapshot)
        for key in shares:
            self._shares.setdefault(key, snapshot)

    def release(self) -> None:
        if self._has_shared:
            self.epoch.shared.release_all(self.owner)
        self.epoch.locks.release_all(self.owner)


def claim_inserts(plan: WritePlan, rows: Iterable[Row]) -> list[Claim]:
    """A row that comes takes its keys: whoever wants one of them waits."""
    claims: list[Claim] = []
    for row in rows:
        if not plan.has_hidden_key:
            claims.append(_claim_row(plan.primary, row, LockStrength.UPDATE))
        claims += _claim_unique(plan, row)
    return claims


def claim_deletes(plan: WritePlan, buffer: WriteBuffer, rows: Iterable[Row]) -> list[Claim]:
    claims: list[Claim] = []
    for row in rows:
        if not _is_own(plan.primary, buffer, row):
            claims.append(_claim_row(plan.primary, row, LockStrength.UPDATE))
        claims += _claim_unique(plan, row)
    return claims


def claim_updates(plan: WritePlan, buffer: WriteBuffer, old: Iterable[Row], new: Iterable[Row]) -> list[Claim]:
    """A row whose keys stay is locked so that others may still refer to it."""
    claims: list[Claim] = []
    width = plan.primary.key_width
    for before, after in zip(old, new, strict=True):
        taken = set(_claim_unique(plan, before)) ^ set(_claim_unique(plan, after))
        moves = plan.primary.stored(before)[:width] != plan.primary.stored(after)[:width]
        strength = LockStrength.UPDATE if moves or taken else LockStrength.NO_KEY_UPDATE
        if not _is_own(plan.primary, buffer, before):
            claims.append(_claim_row(plan.primary, before, strength))
        if moves:
            claims.append(_claim_row(plan.primary, after, strength))
        claims += sorted(taken, key=lambda claim: claim.lock)
    return claims


def claim_key(plan: EntryPlan, key: Row, strength: LockStrength) -> Claim:
    """The claim on a row, by its primary key. Only a change of the key itself concerns those who refer to it."""
    encoded = plan.codec.encode(key)
    of_key = strength in (LockStrength.UPDATE, LockStrength.KEY_SHARE)
    also = unique_hash(plan.index.id, encoded) if of_key else None
    return Claim(entry_hash(plan.index.id, encoded), strength, also)


def _claim_row(plan: EntryPlan, row: Row, strength: LockStrength) -> Claim:
    return claim_key(plan, plan.stored(row)[: plan.key_width], strength)


def _claim_unique(plan: WritePlan, row: Row) -> Iterator[Claim]:
    for entry in plan.entries[1:]:
        unique = entry.unique_key(entry.stored(row)) if entry.unique_width and entry.has_entry(row) else None
        if unique is not None:
            yield Claim(unique_hash(entry.index.id, entry.unique_codec.encode(unique)), LockStrength.UPDATE)


def _is_own(plan: EntryPlan, buffer: WriteBuffer, row: Row) -> bool:
    """What this transaction has written already is its own until it ends."""
    own = buffer.indexes.get(plan.index.id)
    return own is not None and plan.codec.encode(plan.stored(row)[: plan.key_width]) in own.entries
