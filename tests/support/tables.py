"""The tables of the crash tests, and whole reads of them.

`left` and `right` have a primary key and a unique secondary index, and every commit writes the same to both; `first`
and `second` have no declared key, so that a commit that happened twice shows as two rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, IndexId, LayoutId, TableId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.storage.plan import Overlay, plan_scan
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

KEYED = ("left", "right")
KEYLESS = ("first", "second")
INTEGER = SqlType(Kind.INTEGER)

Row = tuple[Any, ...]


def keyed_table(name: str, ids: Sequence[int], unique: bool = True) -> Table:
    columns = (
        Column(ColumnId(1), "id", BIGINT, nullable=False),
        Column(ColumnId(2), "code", TEXT, nullable=False),
        Column(ColumnId(3), "n", INTEGER),
        Column(ColumnId(4), "note", TEXT),
    )
    codes = Index(IndexId(ids[2]), f"{name}_code_key", (ColumnId(2),), unique=True)
    return _table(name, ids, columns, ColumnId(1), (codes,) if unique else ())


def keyless_table(name: str, ids: Sequence[int]) -> Table:
    columns = (
        Column(ColumnId(1), "marker", BIGINT),
        Column(ColumnId(2), "rowid", BIGINT, nullable=False, hidden=True),
    )
    return _table(name, ids, columns, ColumnId(2), ())


def _table(
    name: str, ids: Sequence[int], columns: tuple[Column, ...], key: ColumnId, secondary: tuple[Index, ...]
) -> Table:
    return Table(
        id=TableId(ids[0]),
        version=1,
        schema="public",
        name=name,
        columns=columns,
        primary=Index(IndexId(ids[1]), f"{name}_pkey", (key,), unique=True),
        secondary=secondary,
        layouts=(Layout(LayoutId(1), tuple((c.id, c.type) for c in columns)),),
        next_column_id=ColumnId(len(columns) + 1),
    )


def create_tables(txn: Transaction) -> None:
    for name in KEYED:
        txn.definitions.publish(None, keyed_table(name, txn.definitions.allocate_ids(3)))
    for name in KEYLESS:
        txn.definitions.publish(None, keyless_table(name, txn.definitions.allocate_ids(2)))


def add_column(txn: Transaction, name: str, column: str, value: int) -> None:
    """A column that the rows before it read as `value`: no byte of theirs moves."""
    table = txn.schema.table(None, name)
    added = Column(table.next_column_id, column, INTEGER, frozen=str(value))
    columns = (*table.columns, added)
    layout = Layout(LayoutId(table.layout.id + 1), tuple((c.id, c.type) for c in columns))
    after = replace(
        table,
        version=table.version + 1,
        columns=columns,
        layouts=(*table.layouts, layout),
        next_column_id=ColumnId(added.id + 1),
    )
    txn.definitions.publish(table, after)


def add_unique_index(txn: Transaction, name: str, column: str) -> None:
    """An index on a table that must be empty: a transaction that planned without it may not commit after it."""
    table = txn.schema.table(None, name)
    assert txn.definitions.is_empty(table)
    txn.definitions.rely_on_empty(table)
    txn.definitions.fence([table.id])
    (index_id,) = txn.definitions.allocate_ids(1)
    index = Index(IndexId(index_id), f"{name}_{column}_key", (table.column_by_name[column].id,), unique=True)
    txn.definitions.publish(table, replace(table, version=table.version + 1, secondary=(*table.secondary, index)))


def run_scan(node: Node, scan: Scan) -> list[Row]:
    cursor = node.duck.cursor()
    try:
        for name, relation in scan.relations.items():
            cursor.register(name, relation)
        return cursor.execute(scan.sql, dict(scan.parameters)).fetchall()
    finally:
        cursor.close()


def read_table(node: Node, txn: Transaction, name: str) -> list[Row]:
    return sorted(run_scan(node, txn.reads.scan(txn.schema.table(None, name))))


def read_index(node: Node, txn: Transaction, table: Table, index: Index) -> list[Row]:
    """The entries of an index, read from its own segments."""
    columns = [table.column_by_id[c] for c in table.entry_key(index)]
    parts = txn.reads.index_parts(table, index)
    scan = plan_scan(table, index, columns, parts, Overlay(), node.parts.warehouse, f"i{index.id}")
    return sorted(run_scan(node, scan))


def read_key_columns(node: Node, txn: Transaction, table: Table, index: Index) -> list[Row]:
    """What the entries of an index should be, read from the table's rows."""
    columns = [table.column_by_id[c] for c in table.entry_key(index)]
    parts = txn.reads.index_parts(table, table.primary)
    scan = plan_scan(table, table.primary, columns, parts, Overlay(), node.parts.warehouse, f"r{index.id}")
    return sorted(run_scan(node, scan))
