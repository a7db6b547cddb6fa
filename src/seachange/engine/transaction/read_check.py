"""Whether commits since a SERIALIZABLE transaction's snapshot concern the rows that it has read under conditions.

A row that a commit wrote concerns a reader if its new image meets the reader's conditions, or if the version that the
reader could see did. Every new image counts, also one that was replaced meanwhile.

**Invariant:** in doubt a commit concerns the reader: a layout that lacks a column of the reader's version of the table,
and more rows than are worth a look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from seachange.engine.buffer.read_set import TableReads
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.model.ids import LayoutId, Seq
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Table
from seachange.model.segments import InlineBatch, Op, Segment, SegmentKind
from seachange.storage.batches import BatchCodec, read_batch
from seachange.storage.projection import StoredColumns

Row = tuple[Any, ...]
# A stored row with what happened to it; of one that went, only the key.
_Change = tuple[Op, LayoutId, Row]

# Each row that replaced another costs a look-up.
_ROWS_MAX = 2_000


def find_concerned(txn: TransactionState, after: Seq, upto: Seq) -> Seq | None:
    """The first commit in (after, upto] that wrote a row which the transaction has read under a condition."""
    with txn.epoch.lock:
        newest = txn.epoch.conflicts.newest_touching(txn.read_set.conditional)
    if newest <= after:
        return None
    known = {index_id: _with_layouts(txn, reads.table) for index_id, reads in txn.read_set.conditional.items()}
    for entry in txn.epoch.catalog.follow(txn.epoch.epoch, after):
        if entry.seq > upto:
            break
        for index_id in txn.read_set.conditional.keys() & set(entry.touched):
            if _concerns(txn, txn.read_set.conditional[index_id], known[index_id], entry):
                return entry.seq
    return None


def _with_layouts(txn: TransactionState, table: Table) -> Table:
    """The table as the reader knows it, with the layouts of later versions that hold all of its columns."""
    columns = set(table.layout.columns)
    later = {layout.id: layout for t in txn.epoch.schemas.versions(table.id, table.version) for layout in t.layouts}
    whole = [i for i in later if i not in table.layout_by_id and columns <= set(later[i].columns)]
    # The newest layout stays the last.
    return replace(table, layouts=(*(later[i] for i in whole), *table.layouts)) if whole else table


def _concerns(txn: TransactionState, reads: TableReads, table: Table, entry: LogEntry) -> bool:
    index_id = table.primary.id
    written: list[InlineBatch | Segment] = [*entry.batches, *entry.segments]
    parts = [part for part in written if part.index_id == index_id]
    unknown = {part.layout_id for part in parts} - table.layout_by_id.keys()
    if unknown or sum(part.rows for part in parts) > _ROWS_MAX:
        return True
    width = len(table.primary.key)
    image = txn.epoch.image(table, table.primary, txn.snapshot.seq)

    def meets(layout_id: LayoutId, stored: Row) -> bool:
        project = txn.parts.read_projection(table, layout_id)
        row = stored if project is None else project(stored)
        return any(predicate(row) for predicate in reads.predicates.values())

    for op, layout_id, row in _changes(txn, table, entry):
        if op is not Op.TOMBSTONE and meets(layout_id, row):
            return True
        old = image.get(row[:width], txn.snapshot.seq) if op is not Op.INSERT else None
        if old is not None and meets(old.layout_id, old.row):
            return True
    return False


def _changes(txn: TransactionState, table: Table, entry: LogEntry) -> Iterator[_Change]:
    index_id = table.primary.id
    for batch in entry.batches:
        if batch.index_id == index_id:
            ops, rows = read_batch(batch, table.full_name, lambda layout_id: BatchCodec(_stored(table, layout_id)))
            yield from ((Op(op), batch.layout_id, row) for op, row in zip(ops, rows, strict=True))
    for segment in entry.segments:
        if segment.index_id == index_id:
            op = Op.TOMBSTONE if segment.kind is SegmentKind.TOMBSTONES else Op.INSERT if segment.fresh else Op.PUT
            yield from ((op, segment.layout_id, row) for row in _rows(txn, table, segment))


def _stored(table: Table, layout_id: LayoutId) -> StoredColumns:
    return table.stored_columns(table.primary, table.layout_by_id[layout_id])


def _rows(txn: TransactionState, table: Table, segment: Segment) -> Iterator[Row]:
    reader = txn.parts.warehouse.reader(segment, _stored(table, segment.layout_id)[: len(table.primary.key)])
    return (reader.row(position) for position in range(segment.rows))
