"""Whether commits since a SERIALIZABLE transaction's snapshot concern the rows that it has read under conditions.

A row that a commit wrote concerns a reader if its new image meets the reader's conditions, or if the version that the
reader could see did. Every new image counts, also one that was replaced meanwhile.

**Invariant:** in doubt a commit concerns the reader: a layout that the reader's version of the table does not know, and
more rows than are worth a look.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seachange.engine.readset import TableReads
from seachange.engine.transactionstate import TransactionState
from seachange.model.ids import IndexId, LayoutId, Seq
from seachange.model.log import LogEntry
from seachange.model.segments import InlineBatch, Op, Segment, SegmentKind
from seachange.storage.batches import BatchCodec
from seachange.storage.projection import StoredColumns

Row = tuple[Any, ...]
# A stored row with what happened to it; of one that went, only the key.
_Change = tuple[Op, LayoutId, Row]

# Each row that replaced another costs a look-up.
_ROWS_MAX = 2_000


def find_concerned(txn: TransactionState, after: Seq, upto: Seq) -> Seq | None:
    """The first commit in (after, upto] that wrote a row which the transaction has read under a condition."""
    with txn.epoch.lock:
        newest = txn.epoch.conflicts.newest_touching(txn.reads.conditional)
    if newest <= after:
        return None
    for entry in txn.epoch.catalog.follow(txn.epoch.epoch, after):
        if entry.seq > upto:
            break
        for index_id in txn.reads.conditional.keys() & set(entry.touched):
            if _concerns(txn, txn.reads.conditional[index_id], index_id, entry):
                return entry.seq
    return None


def _concerns(txn: TransactionState, reads: TableReads, index_id: IndexId, entry: LogEntry) -> bool:
    table = reads.table
    written: list[InlineBatch | Segment] = [*entry.batches, *entry.segments]
    parts = [part for part in written if part.index_id == index_id]
    unknown = {part.layout_id for part in parts} - table.layout_by_id.keys()
    if unknown or sum(part.rows for part in parts) > _ROWS_MAX:
        return True
    width = len(table.primary.key)
    image = txn.epoch.image(table, table.primary, txn.snapshot)
    for op, layout_id, row in _changes(txn, reads, entry, index_id):
        if op is not Op.TOMBSTONE and _meets(txn, reads, layout_id, row):
            return True
        old = image.get(row[:width], txn.snapshot) if op is not Op.INSERT else None
        if old is not None and _meets(txn, reads, old.layout_id, old.row):
            return True
    return False


def _meets(txn: TransactionState, reads: TableReads, layout_id: LayoutId, stored: Row) -> bool:
    project = txn.parts.read_projection(reads.table, layout_id)
    row = stored if project is None else project(stored)
    return any(meets(row) for meets in reads.predicates.values())


def _changes(txn: TransactionState, reads: TableReads, entry: LogEntry, index_id: IndexId) -> Iterator[_Change]:
    for batch in entry.batches:
        if batch.index_id == index_id:
            ops, rows = BatchCodec(_stored(reads, batch.layout_id)).decode(batch.payload)
            yield from ((Op(op), batch.layout_id, row) for op, row in zip(ops, rows, strict=True))
    for segment in entry.segments:
        if segment.index_id == index_id:
            op = Op.TOMBSTONE if segment.kind is SegmentKind.TOMBSTONES else Op.INSERT if segment.fresh else Op.PUT
            yield from ((op, segment.layout_id, row) for row in _rows(txn, reads, segment))


def _stored(reads: TableReads, layout_id: LayoutId) -> StoredColumns:
    return reads.table.stored_columns(reads.table.primary, reads.table.layout_by_id[layout_id])


def _rows(txn: TransactionState, reads: TableReads, segment: Segment) -> Iterator[Row]:
    key = _stored(reads, segment.layout_id)[: len(reads.table.primary.key)]
    reader = txn.parts.warehouse.reader(segment, key)
    return (reader.row(position) for position in range(segment.rows))
