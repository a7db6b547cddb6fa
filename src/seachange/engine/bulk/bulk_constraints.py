"""CHECK and FOREIGN KEY constraints of a bulk write, checked over its segments: one query for all CHECK constraints,
one anti-join for each foreign key, one semi-join for each foreign key that refers to removed keys.

**Invariant:** constraints hold on every path: bulk writes are checked here, single rows by
`engine/encode/check_rows.py` and `engine/constraints/foreign_key.py`. Foreign keys are checked at the end of the
statement, after the actions (CASCADE and so on) of its writes; deferred ones at COMMIT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.bulk.bulk_change import BulkChange
from seachange.engine.constraints.foreign_key import ForeignKeys, is_checked
from seachange.engine.constraints.key_view import KeyView, by_id, referring, without
from seachange.engine.constraints.uncommitted import record_broken, record_null
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.reads.row_reads import RowReads
from seachange.model.scan import Scan
from seachange.model.schema.constraint import Action, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.references import action_of
from seachange.model.segments import Segment
from seachange.model.states import REFUSING
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.plan import Overlay, plan_scan, quote
from seachange.storage.warehouse import Warehouse


def check_load(
    txn: TransactionState,
    reads: RowReads,
    plan: WritePlan,
    segments: Sequence[Segment],
    foreign_keys: ForeignKeys,
    checked: bool = False,
) -> None:
    """Called when the segments are staged, so that rows of the load may refer to each other. `checked`: the writer has
    checked the CHECK constraints already."""
    if not segments:
        return
    load = Load(txn, reads, plan.table, parts_of(segments))
    if plan.checks is not None and not checked:
        plan.checks.verify_scan(load.scan_all(), txn.parts.duck, txn.client.interrupts)
    load.record(plan)
    for key in plan.table.foreign_keys:
        load.check(key, foreign_keys)


def check_change(
    txn: TransactionState,
    reads: RowReads,
    plan: WritePlan,
    change: BulkChange,
    assigned: Sequence[Column] | None,
    foreign_keys: ForeignKeys,
) -> None:
    """The same for an update or delete, restricted to what the assigned columns affect."""
    table, changed = plan.table, change.changed
    load = Load(txn, reads, table, parts_of(change.segments))
    if plan.checks is not None and change.segments:
        plan.checks.verify_scan(load.scan_all(), txn.parts.duck, txn.client.interrupts)
    if change.segments:
        load.record(plan)
    for key in table.foreign_keys:
        if change.segments and not changed.isdisjoint(key.columns):
            load.check(key, foreign_keys)
    # Actions first: they may remove rows that a check would reject.
    references = sorted(
        txn.schema.references_to(table),
        key=lambda each: action_of(each[0], each[1], assigned is None) is Action.NO_ACTION,
    )
    for child, key in references:
        index = table.index_by_id[key.parent_index]
        if is_checked(key) and (assigned is None or not changed.isdisjoint(index.key)):
            Departure(txn, reads, table, index, change.removed(index.id)).check(
                child, key, foreign_keys, assigned is None
            )


class Departure:
    """Keys that were removed from a unique index."""

    def __init__(
        self, txn: TransactionState, reads: RowReads, table: Table, index: Index, removed: Sequence[Segment]
    ) -> None:
        self._txn = txn
        self._reads = reads
        self._table = table
        self._index = index
        self._view = KeyView(txn, reads)
        self._columns = [table.column_by_id[c] for c in index.key]
        self._parts = parts_of(removed)

    def check(self, child: Table, key: ForeignKey, foreign_keys: ForeignKeys, deleted: bool) -> None:
        if not self._parts.files:
            return
        if key.uncommitted:
            foreign_keys.require_now(child, key, self._view.run(self._gone()), left=True)
            return
        action = action_of(child, key, deleted)
        is_later = foreign_keys.is_checked_later(child, key) or foreign_keys.is_uncommitted(child, key)
        if is_later or action not in (Action.NO_ACTION, Action.RESTRICT):
            foreign_keys.left(child, key, self._view.run(self._gone()), action)
            return
        gone = self._gone()
        if action is Action.NO_ACTION:
            # Another row may have taken the key over.
            present = self._view.scan(self._table, self._index, self._columns)
            gone = without(gone, present, self._columns, self._columns)
        for value in self._view.run(self._referring(child, key, gone)):
            raise foreign_keys.still_referenced(child, key, value)

    def _gone(self) -> Scan:
        table, warehouse = self._table, self._txn.parts.warehouse
        scan = plan_scan(table, self._index, self._columns, self._parts, Overlay(), warehouse, "gone")
        return referring(by_id(scan, self._columns), self._columns)

    def _referring(self, child: Table, key: ForeignKey, gone: Scan) -> Scan:
        columns = [child.column_by_id[c] for c in key.columns]
        # The foreign key may be on a column that is not public yet.
        rows = self._reads.scan(child, hidden=True)
        names = [f"s.{quote(child.label(c))}" for c in columns]
        same = " AND ".join(f"{n} = g.{column_name(p.id)}" for n, p in zip(names, self._columns, strict=True))
        listed = ", ".join(names)
        sql = f"SELECT {listed} FROM ({rows.sql}) s SEMI JOIN ({gone.sql}) g ON {same} LIMIT 1"  # noqa: S608 - quoted
        return Scan(sql, {**rows.parameters, **gone.parameters}, {**rows.relations, **gone.relations})


def scan_rows(table: Table, parts: SnapshotParts, warehouse: Warehouse) -> Scan:
    """All columns of the rows of a load, by their labels."""
    columns = [replace(column, name=table.label(column)) for column in table.columns]
    return plan_scan(table, table.primary, columns, parts, Overlay(), warehouse, "load")


def parts_of(segments: Sequence[Segment]) -> SnapshotParts:
    nothing = np.array([], dtype=np.int64)
    return SnapshotParts(tuple(FileSlice(segment, nothing) for segment in segments), ())


class Load:
    """Rows of a table that the transaction has written."""

    def __init__(self, txn: TransactionState, reads: RowReads, table: Table, parts: SnapshotParts) -> None:
        self._txn = txn
        self._reads = reads
        self._table = table
        self._parts = parts

    def scan_all(self) -> Scan:
        return scan_rows(self._table, self._parts, self._txn.parts.warehouse)

    def record(self, plan: WritePlan) -> None:
        """Violations of constraints that are not committed."""
        txn = self._txn
        if plan.recorded_checks is not None:
            found = plan.recorded_checks.broken_in_scan(self.scan_all(), txn.parts.duck, txn.client.interrupts)
            record_broken(txn, self._table, found)
        for _, column in plan.recorded_nulls:
            rows, name = self.scan_all(), quote(self._table.label(column))
            sql = f"SELECT * FROM ({rows.sql}) WHERE {name} IS NULL LIMIT 1"  # noqa: S608 - quoted
            for row in KeyView(txn, self._reads).run(Scan(sql, rows.parameters, rows.relations)):
                record_null(txn, self._table, column, row)

    def scan(self, columns: Sequence[Column]) -> Scan:
        table, warehouse = self._table, self._txn.parts.warehouse
        return plan_scan(table, table.primary, columns, self._parts, Overlay(), warehouse, "load")

    def check(self, key: ForeignKey, foreign_keys: ForeignKeys) -> None:
        check_references(self._txn, self._reads, self._table, key, self._keys(key), foreign_keys)

    def check_now(self, key: ForeignKey, foreign_keys: ForeignKeys) -> None:
        """Also if the constraint is deferred, or not enforced yet."""
        check_references_now(self._txn, self._reads, self._table, key, self._keys(key), foreign_keys)

    def _keys(self, key: ForeignKey) -> Scan:
        columns = [self._table.column_by_id[c] for c in key.columns]
        return by_id(self.scan(columns), columns)


def check_references(
    txn: TransactionState, reads: RowReads, table: Table, key: ForeignKey, rows: Scan, foreign_keys: ForeignKeys
) -> None:
    """Checks the keys of many rows of a table, which are a scan of the columns of a foreign key, named by id."""
    if key.state in REFUSING and not foreign_keys.is_checked_later(table, key):
        check_references_now(txn, reads, table, key, rows, foreign_keys)
        return
    columns = [table.column_by_id[c] for c in key.columns]
    foreign_keys.require_now(table, key, KeyView(txn, reads).run(referring(rows, columns, key.match_full)))


def check_references_now(
    txn: TransactionState, reads: RowReads, table: Table, key: ForeignKey, rows: Scan, foreign_keys: ForeignKeys
) -> None:
    view, columns = KeyView(txn, reads), [table.column_by_id[c] for c in key.columns]
    wanted = referring(rows, columns, key.match_full)
    parent = txn.schema.table_by_id(key.parent)
    assert parent is not None, key
    index = parent.index_by_id[key.parent_index]
    others = [parent.column_by_id[c] for c in index.key]
    present = view.scan(parent, index, others)
    for missing in view.run(without(wanted, present, columns, others, "LIMIT 1")):
        reads.note_scan(parent)
        raise foreign_keys.missing_parent(table, key, missing)
    if not txn.pending.is_new(parent):
        foreign_keys.share(table, parent, key, view.run(wanted))
