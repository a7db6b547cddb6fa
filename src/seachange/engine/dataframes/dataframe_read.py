"""A table as a Spark DataFrame, at the snapshot of a transaction, including its own writes.

**Invariant:** the snapshot that a DataFrame reads is pinned in the registry, so that its files are not collected, until
its transaction ends; for a DataFrame that was created outside of a transaction, until its connection is closed.
"""

from __future__ import annotations

from typing import Any

from seachange import errors
from seachange.engine.buffer.write_buffer import IndexBuffer
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.registry import SnapshotPins
from seachange.engine.transaction.enum_labels import EnumTypes
from seachange.engine.transaction.transaction import Transaction
from seachange.model.schema.descriptor import Table
from seachange.pipeline.frame_parts import frame_branches, hide_keys
from seachange.pipeline.spark_backend import load_spark
from seachange.runtime.location import is_url
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import Key

# PySpark is optional, so its types cannot be imported.
DataFrame = Any
SparkSession = Any


def spark_table(txn: Transaction, table: Table, spark: SparkSession, holds: SnapshotPins) -> DataFrame:
    """`holds` pins the snapshot."""
    backend = load_spark()
    check_shared(txn.state.parts, spark, "a DataFrame of a table")
    holds.add(txn.state.epoch.registry, txn.state.snapshot.seq)
    txn.reads.note_scan(table)
    parts = txn.reads.index_parts(table, table.primary)
    own = txn.state.buffer.indexes.get(table.primary.id)
    every = [parts] if own is None else [_without_hidden(txn, parts, own), _own_rows(own)]
    branches = frame_branches(table, every, txn.state.parts.warehouse)
    return backend.frame_reads.table_frame(spark, table.visible_columns, branches, frame_labels(txn, table))


def check_shared(parts: NodeParts, spark: SparkSession, what: str) -> None:
    """Executors read and write files of the local folder, which is shared with them unless the data is in an object
    store."""
    if is_url(parts.files.address) and not spark.conf.get("spark.master", "").startswith("local"):
        raise errors.SparkNeedsSharedFiles(what=what)


def frame_labels(txn: Transaction, table: Table) -> dict[int, dict[str, str]]:
    """The labels of its enum types, by type id."""
    types = EnumTypes(txn.schema)
    return {c.type.enum: types.labels(c).shown for c in table.columns if c.type.enum}


def _without_hidden(txn: Transaction, parts: SnapshotParts, own: IndexBuffer) -> SnapshotParts:
    """The committed rows without those that the transaction has replaced or removed."""
    warehouse, plan = txn.state.parts.warehouse, own.plan
    key = plan.columns[: plan.key_width]
    hidden: list[Key] = [entry.key for entry in own.entries.values() if entry.existed]
    for file in own.hiding:
        hidden += warehouse.reader(file.segment, key).keys()
    return hide_keys(parts, hidden, key, plan.codec, warehouse)


def _own_rows(own: IndexBuffer) -> SnapshotParts:
    overlay = own.overlay()
    inline = () if overlay.rows is None else ((own.plan.layout_id, overlay.rows),)
    return SnapshotParts(overlay.files, inline)
