"""Keys as one transaction sees them: its own buffer over what was committed at its snapshot.

Few keys are looked up one by one; many are one join in DuckDB.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from seachange.engine.buffer.staged import is_hidden
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.reads.unique_lookup import find_primary_key
from seachange.model.ids import ColumnId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.keys import Key
from seachange.storage.plan import Overlay, plan_scan, quote
from seachange.storage.small_arrays import array_of
from seachange.values.number_coercion import INTEGER_BITS

Row = tuple[Any, ...]
# Up to this many keys are looked up without DuckDB.
LOOKUPS_MAX = 64


class KeyView:
    def __init__(self, txn: TransactionState, reads: RowReads) -> None:
        self._txn = txn
        self._reads = reads

    # Unique keys.

    def missing(self, table: Table, index: Index, keys: Collection[Key]) -> list[Key]:
        """The keys (without NULLs) that no row has in a unique index."""
        if len(keys) <= LOOKUPS_MAX:
            return [key for key in keys if not self.holds(table, index, key)]
        columns = [table.column_by_id[c] for c in index.key]
        given = _relation("wanted", columns, keys)
        missing = self.run(without(given, self.scan(table, index, columns), columns, columns))
        if missing:
            self._reads.note_scan(table)
        return missing

    def holds(self, table: Table, index: Index, key: Key) -> bool:
        if index.id == table.primary.id:
            return self._reads.get(table, key) is not None
        self._reads.note_unique(table, index, key)
        plan, is_new = self._txn.parts.write_plan(table), self._txn.pending.is_new(table)
        return find_primary_key(self._txn, plan, index, key, is_new) is not None

    def _staged(self, own: IndexBuffer, key: Key) -> list[Key]:
        """The entries with this prefix that a bulk insert of the transaction wrote."""
        plan = own.plan
        columns = plan.columns[: plan.key_width]
        return [
            row[: plan.key_width]
            for file in own.staged
            for position, row in self._txn.parts.warehouse.reader(file.segment, columns).find_prefix(key)
            if position not in file.deleted
        ]

    def _committed(self, table: Table, index: Index, key: Key) -> dict[bytes, Key]:
        if self._txn.pending.is_new(table):
            return {}
        snapshot = self._txn.snapshot.seq
        found = self._txn.block.image(table, index, snapshot).find_unique(key, snapshot)
        plan = self._txn.parts.write_plan(table).entry(index.id)
        return {plan.codec.encode(f.row[: plan.key_width]): f.row[: plan.key_width] for f in found}

    # Rows by any columns.

    def rows_with(self, table: Table, columns: Sequence[ColumnId], keys: Collection[Key]) -> list[Row]:
        """The rows of a table whose values in these columns are among the keys. The keys may be of wider types and
        contain NULLs."""
        wanted = [table.column_by_id[c] for c in columns]
        keys = [key for key in keys if all(map(_can_hold, wanted, key))]
        if not keys:
            return []
        snapshot, block = self._txn.snapshot.seq, self._txn.block
        plain = (i for i in table.readable if table.is_plain(i) and block.is_readable(i.id, snapshot))
        index = next((i for i in plain if set(i.key) == set(columns) and len(i.key) == len(columns)), None)
        has_nulls = any(None in key for key in keys)
        if index is not None and len(keys) <= LOOKUPS_MAX and not has_nulls:
            order = [columns.index(c) for c in index.key]
            return self._by_index(table, index, [tuple([key[p] for p in order]) for key in keys])
        given, scan = _relation("wanted", wanted, keys), self._reads.scan(table, hidden=True)
        equals = "IS NOT DISTINCT FROM" if has_nulls else "="
        same = " AND ".join(f"s.{quote(table.label(c))} {equals} w.{column_name(c.id)}" for c in wanted)
        sql = f"SELECT s.* FROM ({scan.sql}) s SEMI JOIN wanted w ON {same}"  # noqa: S608 - quoted names
        return self.run(Scan(sql, scan.parameters, {**scan.relations, **given.relations}))

    def _by_index(self, table: Table, index: Index, keys: Sequence[Key]) -> list[Row]:
        if index.id == table.primary.id:
            found = [self._reads.get(table, key) for key in keys]
        else:
            positions = [table.entry_key(index).index(c) for c in table.primary.key]
            entries = {entry for key in keys for entry in self._entries(table, index, key)}
            found = [self._reads.get(table, tuple([entry[p] for p in positions])) for entry in entries]
        return [row for row in found if row is not None]

    def _entries(self, table: Table, index: Index, key: Key) -> list[Key]:
        committed = self._committed(table, index, key)
        own = self._txn.buffer.indexes.get(index.id)
        if own is None:
            return list(committed.values())
        warehouse = self._txn.parts.warehouse
        kept = [
            entry
            for encoded, entry in committed.items()
            if encoded not in own.entries and not is_hidden(warehouse, own, entry)
        ]
        width = len(key)
        added = [e.key for e in own.entries.values() if e.row is not None and e.key[:width] == key]
        return [*kept, *added, *self._staged(own, key)]

    # Queries.

    def scan(self, table: Table, index: Index, columns: Sequence[Column], name: str = "keys") -> Scan:
        """The rows of an index as `columns`, named by their ids; `name` is that of the scan in a query."""
        own = self._txn.buffer.indexes.get(index.id)
        overlay = own.overlay() if own is not None else Overlay()
        parts = self._reads.index_parts(table, index)
        return by_id(plan_scan(table, index, columns, parts, overlay, self._txn.parts.warehouse, name), columns)

    def run(self, scan: Scan) -> list[Row]:
        reaching = self._txn.client.interrupts.reaching
        with closing(DuckSession(self._txn.parts.duck.cursor(), {})) as session, reaching(session):
            return session.rows(DuckQuery(scan.sql, scan.parameters, scan.relations)).rows


def _can_hold(column: Column, value: Any) -> bool:
    """Whether a column can hold the value of a referenced key, which may be of a wider integer type."""
    bits = INTEGER_BITS.get(column.type.kind)
    return bits is None or not isinstance(value, int) or -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def by_id(scan: Scan, columns: Sequence[Column]) -> Scan:
    named = ", ".join(f"{quote(c.name)} AS {column_name(c.id)}" for c in columns)
    return Scan(f"SELECT {named} FROM ({scan.sql})", scan.parameters, scan.relations)  # noqa: S608 - quoted names


def referring(rows: Scan, columns: Sequence[Column], match_full: bool = False) -> Scan:
    """The distinct keys that refer to something: without NULLs, or (MATCH FULL) not NULL in all columns."""
    present = (" OR " if match_full else " AND ").join(f"{column_name(c.id)} IS NOT NULL" for c in columns)
    sql = f"SELECT DISTINCT * FROM ({rows.sql}) WHERE {present}"  # noqa: S608 - columns are named by id
    return Scan(sql, rows.parameters, rows.relations)


def without(wanted: Scan, present: Scan, columns: Sequence[Column], others: Sequence[Column], end: str = "") -> Scan:
    """The rows of `wanted` whose `columns` equal the `others` of no row of `present`."""
    pairs = zip(columns, others, strict=True)
    same = " AND ".join(f"w.{column_name(c.id)} = p.{column_name(o.id)}" for c, o in pairs)
    sql = f"SELECT w.* FROM ({wanted.sql}) w ANTI JOIN ({present.sql}) p ON {same} {end}"  # noqa: S608 - named by id
    return Scan(sql, {**wanted.parameters, **present.parameters}, {**wanted.relations, **present.relations})


def _relation(name: str, columns: Sequence[Column], keys: Collection[Key]) -> Scan:
    schema = schema_of((c.id, c.type) for c in columns)
    values = zip(*keys, strict=True)
    arrays = [array_of(column, field.type) for column, field in zip(values, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    return Scan(f"SELECT * FROM {name}", {}, {name: table})  # noqa: S608 - a name of our own
