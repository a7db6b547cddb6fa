"""Which keys a statement locks for the rows that it writes: of the rows themselves, and unique ones.

**Invariant:** a row that the transaction has written already is locked no second time. Rows are locked in the order of
their primary keys: two statements that change the same rows do not lock each other out.

**Invariant:** two transactions of one node that write a row by primary indexes of which one has replaced the other,
with the same key, lock it by the older one first, so the second waits for the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.write_buffer import WriteBuffer
from seachange.engine.encode.write_plan import EntryPlan, WritePlan, pick_columns
from seachange.model.ids import KeyHash, Seq
from seachange.model.locking import LockOwner, LockStrength, LockWish
from seachange.model.schema.descriptor import Index, Table
from seachange.storage.keys import KeyCodec, entry_hash, unique_hash

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class WriteLock:
    """`lock` is the key that others wait for; the commit also checks `also`."""

    lock: KeyHash
    strength: LockStrength
    also: KeyHash | None = None

    @property
    def wish(self) -> LockWish:
        """The lock between nodes. A key-share lock conflicts only with writes to the key itself."""
        guard = self.also if self.strength is LockStrength.KEY_SHARE else None
        return LockWish(self.lock, self.strength, self.lock if guard is None else guard)

    @property
    def written(self) -> Iterator[KeyHash]:
        """The keys that the commit of a locked row declares as written; transactions that rely on them conflict."""
        if self.strength >= LockStrength.NO_KEY_UPDATE:
            yield self.lock
        if self.strength is LockStrength.UPDATE and self.also is not None:
            yield self.also

    @property
    def shared(self) -> Iterator[KeyHash]:
        """The keys that the commit declares as relied upon: the row, or its key only."""
        if self.strength is LockStrength.SHARE:
            yield self.lock
        if self.strength is LockStrength.KEY_SHARE and self.also is not None:
            yield self.also


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that was changed as of `since`, and is locked inside the node alone."""

    write_lock: WriteLock
    table: Table
    since: Seq
    owner: LockOwner


def lock_plan(plan: WritePlan, published: Index) -> EntryPlan:
    """The index by whose keys rows are locked: the primary one that other sessions know, if the rows have its key."""
    table = plan.table
    if published.id == plan.primary.index.id or not set(published.key) <= table.column_by_id.keys():
        return plan.primary
    return replace(
        plan.primary,
        index=published,
        stored=pick_columns(table, published.key),
        key_width=len(published.key),
        codec=KeyCodec([table.column_by_id[c].type for c in published.key]),
    )


def _lock_plans(plan: WritePlan, pending: PendingSchema, replaced: Sequence[Index]) -> list[EntryPlan]:
    """`replaced` are primary indexes of the table before."""
    locked = lock_plan(plan, pending.published_primary(plan.table))
    return [*(replace(locked, index=index) for index in replaced if index.key == locked.index.key), locked]


def claim_inserts(
    plan: WritePlan, rows: Iterable[Row], pending: PendingSchema, replaced: Sequence[Index]
) -> list[WriteLock]:
    """An inserted row locks its unique keys: other writers of one of them wait."""
    write_locks: list[WriteLock] = []
    locked, keys = _lock_plans(plan, pending, replaced), _unique_keys(plan, pending)
    for row in rows:
        if not plan.has_hidden_key:
            write_locks += _claim_row(locked, row, LockStrength.UPDATE)
        write_locks += _claim_unique(keys, row)
    return write_locks


def claim_deletes(
    plan: WritePlan, buffer: WriteBuffer, rows: Iterable[Row], pending: PendingSchema, replaced: Sequence[Index]
) -> list[WriteLock]:
    write_locks: list[WriteLock] = []
    locked, keys = _lock_plans(plan, pending, replaced), _unique_keys(plan, pending)
    for row in sorted(rows, key=lambda row: _place(plan.primary, row)):
        if not _is_own(plan.primary, buffer, row):
            write_locks += _claim_row(locked, row, LockStrength.UPDATE)
        write_locks += _claim_unique(keys, row)
    return write_locks


def claim_updates(
    plan: WritePlan,
    buffer: WriteBuffer,
    old: Iterable[Row],
    new: Iterable[Row],
    pending: PendingSchema,
    replaced: Sequence[Index],
) -> list[WriteLock]:
    """A row whose keys do not change is locked in a mode that still lets others refer to it."""
    write_locks: list[WriteLock] = []
    locked, keys = _lock_plans(plan, pending, replaced), _unique_keys(plan, pending)
    width = plan.primary.key_width
    for before, after in sorted(zip(old, new, strict=True), key=lambda pair: _place(plan.primary, pair[0])):
        taken = set(_claim_unique(keys, before)) ^ set(_claim_unique(keys, after))
        moves = plan.primary.stored(before)[:width] != plan.primary.stored(after)[:width]
        strength = LockStrength.UPDATE if moves or taken else LockStrength.NO_KEY_UPDATE
        if not _is_own(plan.primary, buffer, before):
            write_locks += _claim_row(locked, before, strength)
        if moves:
            write_locks += _claim_row(locked, after, strength)
        write_locks += sorted(taken, key=lambda write_lock: write_lock.lock)
    return write_locks


def claim_key(plan: EntryPlan, key: Row, strength: LockStrength) -> WriteLock:
    """The lock on a row, by its primary key. Only a change of the key itself conflicts with rows that refer to it."""
    encoded = plan.codec.encode(key)
    of_key = strength in (LockStrength.UPDATE, LockStrength.KEY_SHARE)
    also = unique_hash(plan.index.id, encoded) if of_key else None
    return WriteLock(entry_hash(plan.index.id, encoded), strength, also)


def _claim_row(plans: Sequence[EntryPlan], row: Row, strength: LockStrength) -> Iterator[WriteLock]:
    for plan in plans:
        yield claim_key(plan, plan.stored(row)[: plan.key_width], strength)


def _unique_keys(plan: WritePlan, pending: PendingSchema) -> list[EntryPlan]:
    """No session waits for another writer of a key that is not committed to be unique."""
    return [
        entry
        for entry in plan.entries[1:]
        if entry.unique_width and not entry.index.uncommitted and not pending.adds_keys(plan.table.id, entry.index.id)
    ]


def _claim_unique(keys: Iterable[EntryPlan], row: Row) -> Iterator[WriteLock]:
    for entry in keys:
        unique = entry.unique_key(entry.stored(row)) if entry.has_entry(row) else None
        if unique is not None:
            yield WriteLock(unique_hash(entry.index.id, entry.unique_codec.encode(unique)), LockStrength.UPDATE)


def _place(plan: EntryPlan, row: Row) -> bytes:
    return plan.codec.encode(plan.stored(row)[: plan.key_width])


def _is_own(plan: EntryPlan, buffer: WriteBuffer, row: Row) -> bool:
    """A row that this transaction has written is locked by it already."""
    own = buffer.indexes.get(plan.index.id)
    return own is not None and plan.codec.encode(plan.stored(row)[: plan.key_width]) in own.entries
