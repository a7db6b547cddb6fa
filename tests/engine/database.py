"""Tables and rows for tests that drive the engine without SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, IndexId, LayoutId, TableId
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.storage.arrow import arrow_type
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

Row = tuple[Any, ...]
INTEGER = SqlType(Kind.INTEGER)

# id bigint primary key, v text, n integer.
COLUMNS = (
    Column(ColumnId(1), "id", BIGINT, nullable=False),
    Column(ColumnId(2), "v", TEXT),
    Column(ColumnId(3), "n", INTEGER),
)


def open_quiet(data: Path, name: str = "one") -> Node:
    """A node that compacts only on request."""
    node = open_node(data, name=name)
    node.maintenance.paused = True
    return node


def new_table(
    txn: Transaction,
    name: str = "t",
    columns: Sequence[Column] = COLUMNS,
    key: Sequence[int] = (1,),
    indexes: Iterable[tuple[str, Sequence[int], bool]] = (),
) -> Table:
    """A table as a CREATE TABLE would publish it; `indexes` are (name, key, unique)."""
    wanted = list(indexes)
    ids = txn.definitions.allocate_ids(2 + len(wanted))
    table = Table(
        id=TableId(ids[0]),
        version=1,
        schema="public",
        name=name,
        columns=tuple(columns),
        primary=Index(IndexId(ids[1]), f"{name}_pkey", tuple(map(ColumnId, key)), True),
        secondary=tuple(
            Index(IndexId(id_), index, tuple(map(ColumnId, columns_)), unique)
            for id_, (index, columns_, unique) in zip(ids[2:], wanted, strict=True)
        ),
        layouts=(Layout(LayoutId(1), tuple((c.id, c.type) for c in columns)),),
        next_column_id=ColumnId(max(c.id for c in columns) + 1),
    )
    txn.definitions.publish(None, table)
    return table


def create(node: Node, **options: Any) -> Table:
    txn = node.begin()
    table = new_table(txn, **options)
    txn.commit()
    return table


def with_columns(table: Table, columns: Sequence[Column]) -> Table:
    """The next version of a table, with a layout of its own."""
    layout = Layout(LayoutId(table.layout.id + 1), tuple((c.id, c.type) for c in columns))
    following = max([*(c.id for c in columns), table.next_column_id - 1]) + 1
    return replace(
        table,
        version=table.version + 1,
        columns=tuple(columns),
        layouts=(*table.layouts, layout),
        next_column_id=ColumnId(following),
    )


def add_column(table: Table, name: str, type_: SqlType = INTEGER, frozen: str | None = None) -> Table:
    return with_columns(table, (*table.columns, Column(table.next_column_id, name, type_, frozen=frozen)))


def insert(node: Node, *rows: Row, table: str = "t") -> int:
    txn = node.begin()
    txn.writes.insert(txn.schema.table(None, table), rows)
    seq = txn.commit()
    assert seq is not None
    return seq


def arrow(table: Table, rows: Sequence[Row]) -> pa.RecordBatchReader:
    """Rows for `insert_arrow`."""
    columns = table.visible_columns
    schema = pa.schema([(c.name, arrow_type(c.type)) for c in columns])
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.table([pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema).to_reader()


def bulk(node: Node, *rows: Row, table: str = "t") -> int:
    txn = node.begin()
    found = txn.schema.table(None, table)
    txn.writes.insert_arrow(found, arrow(found, rows))
    seq = txn.commit()
    assert seq is not None
    return seq


def scan(node: Node, txn: Transaction, table: Table) -> list[Row]:
    """All rows that a transaction sees, in order, by the read plan."""
    planned = txn.reads.scan(table)
    with node.duck.cursor() as cursor:
        for name, relation in planned.relations.items():
            cursor.register(name, relation)
        return sorted(cursor.execute(planned.sql, dict(planned.parameters)).fetchall(), key=repr)


def rows(node: Node, table: str = "t", as_of: int | None = None) -> list[Row]:
    """All rows that are committed."""
    txn = node.begin(as_of=as_of)  # type: ignore[arg-type]
    try:
        return scan(node, txn, txn.schema.table(None, table))
    finally:
        txn.rollback()
