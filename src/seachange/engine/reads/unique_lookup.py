"""Lookup by unique key: the transaction's own rows first, then committed rows that it has not changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seachange.engine.buffer.staged import is_hidden
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.model.schema.descriptor import Index
from seachange.storage.image import StoredRow
from seachange.storage.keys import Key

Row = tuple[Any, ...]


def find_primary_key(txn: TransactionState, plan: WritePlan, index: Index, key: Key, is_new: bool) -> Key | None:
    """`is_new`: the transaction created the table, so none of its rows are committed."""
    entry = next(entry for entry in plan.entries if entry.index.id == index.id)
    positions = {column: i for i, (column, _) in enumerate(entry.columns)}
    for stored in _entries(txn, plan, entry, key, is_new):
        return tuple([stored[positions[column]] for column in plan.table.primary.key])
    return None


def _entries(txn: TransactionState, plan: WritePlan, entry: EntryPlan, key: Key, is_new: bool) -> Iterator[Row]:
    own = txn.buffer.indexes.get(entry.index.id)
    if own is not None:
        yield from _own_entries(txn, entry, own, key)
    if is_new:
        return
    at = txn.block.seen_at(entry.index.id, txn.snapshot.seq)
    image = txn.block.image(plan.table, entry.index, at)
    for found in _only(image.get(key, at)) if entry.holds_rows else image.find_unique(key, at):
        encoded = entry.codec.encode(found.row[: entry.key_width])
        if own is None or (encoded not in own.entries and not is_hidden(txn.parts.warehouse, own, found.row)):
            yield found.row


def _only(found: StoredRow | None) -> list[StoredRow]:
    """A future primary index has at most one row for a key."""
    return [] if found is None else [found]


def _own_entries(txn: TransactionState, entry: EntryPlan, own: IndexBuffer, key: Key) -> Iterator[Row]:
    for encoded in [entry.codec.encode(key)] if entry.holds_rows else own.unique.get(key, ()):
        known = own.entries.get(encoded)
        if known is not None and known.row is not None:
            yield known.row
    for file in own.staged:
        reader = txn.parts.warehouse.reader(file.segment, entry.columns[: entry.key_width])
        for position, row in reader.find_prefix(key):
            if position not in file.deleted:
                yield row
