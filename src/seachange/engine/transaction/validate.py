"""Validation of a commit against what the node has applied, before the sequencer lock.

Keys that a commit lists are compared by hash. A bulk commit lists none: its segments are probed by key instead, in both
directions.

**Invariant:** when `validate` returns sequence V, no commit in (base, V] wrote, or relied upon, a key that the
transaction wrote at `base`, for each of its writes; nor wrote anything that a SERIALIZABLE transaction has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.bulk.entry_files import hash_entries
from seachange.engine.constraints.uncommitted import is_soft, meet_key
from seachange.engine.encode.write_plan import EntryPlan
from seachange.engine.transaction.read_check import find_concerned
from seachange.model.ids import IndexId, KeyHash, Seq, TableId
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Table
from seachange.model.segments import Segment
from seachange.storage.batches import read_batch
from seachange.storage.keys import Hashes, Key


@dataclass(frozen=True, slots=True)
class WriteSet:
    """The hashes that a commit lists, each with the snapshot that it was computed at."""

    writes: Mapping[KeyHash, Seq]
    shares: Mapping[KeyHash, Seq]
    oldest: Seq
    listed: Sequence[tuple[Hashes, Seq]] = ()


def validate(txn: TransactionState, keys: WriteSet, checked: Seq) -> Seq:
    """Raises SerializationFailure on a conflict; gives the sequence up to which there is none. What was staged, and
    what was read under conditions, is known to have none up to `checked`."""
    epoch = txn.epoch
    with epoch.lock:
        validated = epoch.applied
        conflict = epoch.conflicts.find(keys.writes, keys.shares)
        if conflict is None and keys.listed:
            conflict = epoch.conflicts.find_listed(keys.listed)
        if conflict is None:
            conflict = txn.read_set.find_conflict(epoch.conflicts, txn.snapshot.seq)
        bulk = epoch.conflicts.bulk_since(keys.oldest, txn.buffer.indexes)
    if conflict is None:
        conflict = _replaced(txn, validated) or _find_changed(txn, keys)
    if conflict is not None:
        raise conflict_with(conflict)
    if txn.read_set.conditional:
        conflict = find_concerned(txn, max(checked, txn.snapshot.seq), validated)
        if conflict is not None:
            raise conflict_with(conflict)
    for seq, segments in bulk:
        _check_against_bulk(txn, seq, segments)
    staged = {i: b for i, b in txn.buffer.indexes.items() if any(file.hashes is None for file in b.staged)}
    if staged:
        _check_staged(txn, staged, checked, validated)
    for table, snapshot in txn.declared.relied_empty.values():
        if validated > snapshot and not epoch.image(table, table.primary, validated).is_empty(validated):
            raise conflict_with(validated)
    return validated


def _replaced(txn: TransactionState, upto: Seq) -> Seq | None:
    """A commit that wrote to a table which a SERIALIZABLE transaction has read, when the rows lay in another primary
    index than it knows: that is not compared with what it read."""
    for index_id, later in read_successors(txn, upto).items():
        first, _ = later[0]
        indexes = [successor for _, successor in later if successor is not None]
        with txn.epoch.lock:
            newest = txn.epoch.conflicts.newest_touching([index_id, *indexes])
        if newest >= first or len(indexes) < len(later):
            return max(newest, first)
    return None


def read_successors(txn: TransactionState, upto: Seq) -> dict[IndexId, list[tuple[Seq, IndexId | None]]]:
    """By the primary index of a table that was read: those that took its place up to a sequence, each with the
    sequence from which on what is written there is a conflict: the publication that made it so; behind it, if that was
    a child transaction of this one."""
    if not txn.read_set.indexes or txn.snapshot.seq == upto:
        return {}
    found = {}
    for table in txn.epoch.schema(txn.snapshot.seq).by_id.values():
        if table.primary.id in txn.read_set.indexes:
            later = txn.epoch.schemas.primaries(table.id, txn.snapshot.seq, upto)
            own = int(txn.pending.changes(table))
            later = [(Seq(seq + own), index_id) for seq, index_id in later if index_id != table.primary.id]
            if later:
                found[table.primary.id] = later
    return found


def _find_changed(txn: TransactionState, keys: WriteSet) -> Seq | None:
    """The commit as of which a row is another than at the snapshot that this transaction writes, or relies on."""
    for index_id, past in txn.block.state.past.items():
        if len(past.changed):
            own = [_single(keys), *(hashes for hashes, _ in keys.listed), *_unlisted(txn, index_id)]
            if len(np.intersect1d(past.changed, np.concatenate(own))):
                return past.since
    return None


def _single(keys: WriteSet) -> Hashes:
    return np.fromiter(chain(keys.writes, keys.shares), np.int64)


def _unlisted(txn: TransactionState, index_id: IndexId) -> Iterator[Hashes]:
    """Files of rows that no key was listed for."""
    buffer = txn.buffer.indexes.get(index_id)
    for file in buffer.staged if buffer is not None else ():
        if file.hashes is None:
            yield hash_entries(txn, file.plan, file.segment, moves=True)


def conflict_with(seq: Seq) -> errors.SerializationFailure:
    return errors.SerializationFailure(detail=f"a row was changed by a concurrent transaction (commit {seq})")


def _check_against_bulk(txn: TransactionState, seq: Seq, segments: Iterable[Segment]) -> None:
    """Whether a bulk commit holds a key that the buffer wrote below it."""
    for segment in segments:
        buffer = txn.buffer.indexes.get(segment.index_id)
        if buffer is None:
            continue
        # A bulk insert brings keys that no row had; so may a bulk update. Where several rows may have a key, it is the
        # rows that conflict, in the primary index.
        listed = [f for f in buffer.staged if f.brings_keys and f.hashes is not None and f.base < seq]
        if any(_may_share_key(buffer.plan, file.segment, segment) for file in listed):
            own = np.concatenate([file.hashes for file in listed if file.hashes is not None])
            if len(np.intersect1d(own, hash_entries(txn, buffer.plan, segment, moves=True))):
                _meet(txn, buffer.plan, seq, None)
        for entry in buffer.entries.values():
            is_free = entry.row is None and is_soft(txn, buffer.plan)
            if entry.base < seq and not is_free and _holds(txn, buffer.plan, segment, entry.key):
                _meet(txn, buffer.plan, seq, buffer.plan.unique_key(entry.key))


def _meet(txn: TransactionState, plan: EntryPlan, seq: Seq, key: Key | None) -> None:
    """A commit has a key of this one: a conflict, unless the index is not committed."""
    if not is_soft(txn, plan):
        raise conflict_with(seq)
    meet_key(txn, plan, key)


def _may_share_key(plan: EntryPlan, one: Segment, other: Segment) -> bool:
    """Entries of a secondary index may have the same unique key and yet not the same key."""
    if not plan.holds_rows:
        return bool(plan.unique_width)
    return one.key_min <= other.key_max and other.key_min <= one.key_max


def _check_staged(txn: TransactionState, staged: Mapping[IndexId, IndexBuffer], after: Seq, upto: Seq) -> None:
    """Whether any commit in (after, upto] holds a key of the staged segments."""
    for entry in txn.epoch.catalog.follow(txn.epoch.epoch, after):
        if entry.seq > upto:
            return
        for index_id in set(entry.touched) & set(staged):
            buffer = staged[index_id]
            for key in _keys_of(txn, buffer.plan, entry):
                unlisted = (file.segment for file in buffer.staged if file.hashes is None)
                if any(_holds(txn, buffer.plan, segment, key) for segment in unlisted):
                    _meet(txn, buffer.plan, entry.seq, buffer.plan.unique_key(key))


def _keys_of(txn: TransactionState, plan: EntryPlan, entry: LogEntry) -> Iterator[Key]:
    table = _table_written(txn, plan.table_id, entry.seq)
    for batch in entry.batches:
        if batch.index_id == plan.index.id:
            _, rows = read_batch(batch, table.full_name, partial(plan.codec_for, table))
            yield from (row[: plan.key_width] for row in rows)
    for segment in entry.segments:
        if segment.index_id == plan.index.id:
            reader = txn.parts.warehouse.reader(segment, plan.columns[: plan.key_width])
            yield from reader.keys()


def _table_written(txn: TransactionState, table_id: TableId, seq: Seq) -> Table:
    """A version that knows all layouts in which a commit wrote rows: the newest, or if the table is gone by now the one
    that the commit left, or found and dropped."""
    epoch = txn.epoch
    found = epoch.schemas.newest.by_id.get(table_id) or epoch.schema(seq).by_id.get(table_id)
    return found or epoch.schema(Seq(seq - 1)).by_id[table_id]


def _holds(txn: TransactionState, plan: EntryPlan, segment: Segment, key: Key) -> bool:
    reader = txn.parts.warehouse.reader(segment, plan.columns[: plan.key_width])
    unique = plan.unique_key(key)
    if unique is not None:
        return bool(reader.find_prefix(unique))
    return reader.find(key) is not None
