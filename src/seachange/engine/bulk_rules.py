"""CHECK and FOREIGN KEY constraints of a bulk insert, over the segments that it wrote: one query for all checks, one
anti-join for each foreign key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seachange.engine.foreign_key import ForeignKeys, WritingTransaction
from seachange.engine.keyview import KeyView, by_id, without
from seachange.engine.writeplan import WritePlan
from seachange.model.constraint import ForeignKey
from seachange.model.descriptor import Column, Table
from seachange.model.scan import Scan
from seachange.model.segments import Segment
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.plan import Overlay, plan_scan


def check_load(
    txn: WritingTransaction, plan: WritePlan, segments: Sequence[Segment], foreign_keys: ForeignKeys
) -> None:
    """Called when the segments are staged, so that rows of the load may refer to each other."""
    if not segments:
        return
    load = Load(txn, plan.table, segments)
    if plan.checks is not None:
        plan.checks.verify_scan(load.scan(plan.table.columns), txn.parts.duck)
    for key in plan.table.foreign_keys:
        load.check(key, foreign_keys)


class Load:
    def __init__(self, txn: WritingTransaction, table: Table, segments: Sequence[Segment]) -> None:
        self._txn = txn
        self._table = table
        self._view = KeyView(txn)
        nothing = np.array([], dtype=np.int64)
        self._parts = SnapshotParts(tuple(FileSlice(segment, nothing) for segment in segments), ())

    def scan(self, columns: Sequence[Column]) -> Scan:
        table, warehouse = self._table, self._txn.parts.warehouse
        return plan_scan(table, table.primary, columns, self._parts, Overlay(), warehouse, "load")

    def check(self, key: ForeignKey, foreign_keys: ForeignKeys) -> None:
        columns = [self._table.column_by_id[c] for c in key.columns]
        wanted = self._keys(columns)
        parent = self._txn.table_by_id(key.parent)
        assert parent is not None, key
        if key.initially_deferred:
            foreign_keys.require(self._table, key, self._view.run(wanted))
            return
        index = parent.index_by_id[key.parent_index]
        others = [parent.column_by_id[c] for c in index.key]
        present = self._view.scan(parent, index, others)
        for missing in self._view.run(without(wanted, present, columns, others, "LIMIT 1")):
            self._txn.note_scan(parent)
            raise foreign_keys.missing_parent(self._table, key, missing)
        if not self._txn.pending.is_new(parent):
            foreign_keys.share(parent, key, self._view.run(wanted))

    def _keys(self, columns: Sequence[Column]) -> Scan:
        """What the load refers to, each once; a NULL refers to nothing."""
        rows = by_id(self.scan(columns), columns)
        present = " AND ".join(f"{column_name(c.id)} IS NOT NULL" for c in columns)
        sql = f"SELECT DISTINCT * FROM ({rows.sql}) WHERE {present}"  # noqa: S608 - columns are named by id
        return Scan(sql, rows.parameters, rows.relations)
