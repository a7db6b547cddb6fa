"""Seachange as the benchmarks use it: the one module that knows the names of its Python API."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

import seachange
from bench.rows import Row
from seachange.engine.database.opening import acquire_node, release_node
from seachange.runtime.location import find_location

# What a statement raises that Seachange does not take, whatever its data.
Refusal = (seachange.NotSupportedError, seachange.ProgrammingError)
# What any statement may raise.
Error = seachange.Error


class Cursor(Protocol):
    def execute(self, sql: str, parameters: Sequence[object] = ()) -> object: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Database(Protocol):
    autocommit: bool

    def cursor(self) -> Cursor: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def load_arrow(self, table: str, rows: Any) -> object: ...

    def compact(self, table: str) -> object: ...

    def node_statistics(self) -> dict[str, int]: ...


def connect(data: str, catalog: str | None, local: str | None = None) -> Database:
    """An embedded session in autocommit mode."""
    database: Database = seachange.connect(data, catalog, local=local)  # type: ignore[attr-defined,unused-ignore]
    database.autocommit = True
    return database


def load_parquet(database: Database, table: str, source: Path) -> None:
    """Bulk load, streamed: the rows are never in memory at the same time."""
    # Not a dataset scanner: that keeps the compressed bytes of every row group until the end, and they would count.
    file = pq.ParquetFile(source, pre_buffer=False)
    database.load_arrow(table, pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches()))


def compact(database: Database, table: str) -> None:
    database.compact(table)


def catalog_commits(database: Database) -> int:
    return database.node_statistics()["catalog_commits"]


def compactions(database: Database) -> int:
    """The number of compactions of the node so far."""
    return database.node_statistics()["compactions"]


class BareStore:
    """The engine without SQL: changes of one row, each in a transaction of its own."""

    def __init__(self, data: str, catalog: str | None, local: str | None = None) -> None:
        self._node = acquire_node(find_location(data, local), catalog)

    def close(self) -> None:
        release_node(self._node)

    def pause_compaction(self) -> None:
        """Disables compaction unless it is requested."""
        self._node.maintenance.paused = True

    def insert(self, table: str, row: Row) -> None:
        transaction = self._node.begin()
        transaction.writes.insert(transaction.schema.table(None, table), [row])
        transaction.commit()

    def update(self, table: str, old: Row, new: Row) -> None:
        transaction = self._node.begin()
        transaction.writes.update(transaction.schema.table(None, table), [old], [new])
        transaction.commit()

    def delete(self, table: str, old: Row) -> None:
        transaction = self._node.begin()
        transaction.writes.delete(transaction.schema.table(None, table), [old])
        transaction.commit()
