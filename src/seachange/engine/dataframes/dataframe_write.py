"""Writing the rows of a DataFrame to a table: spooled by Spark's executors, written as segments by tasks, attached
once.

Spark evaluates the DataFrame and writes its rows to a folder with its commit protocol, so each row is there once in
spite of retries and speculative execution. The files of that folder are grouped into units; a task per unit, here or on
the executors, writes segments. The segments are staged in the transaction like those of any load.

**Invariant:** the driver is a node like any other: the write is planned with the versions of its snapshot, and its
commit is rebased on what has been published since.

**Invariant:** generated values for the rows are drawn by the driver before a task is sent.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from seachange.engine.bulk.bulk_insert import BulkInsert
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.dataframes.dataframe_read import check_shared
from seachange.engine.dataframes.file_insert import FileInsert, RowFile
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.jobs.spark_pipeline import pipeline_settings
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Epoch
from seachange.model.schema.descriptor import Table
from seachange.pipeline.spark_backend import SparkBackend, load_spark
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_folder
from seachange.sql.copy.frame_load import FrameColumn, plan_frame, source_name
from seachange.storage.segment_reader import reading

# PySpark is optional, so its types cannot be imported.
DataFrame = Any
# Spark begins a new file after this many rows, so that files can be grouped into units.
_FILE_ROWS_MAX = 500_000
_FOLDER = "spool"
# The folders that this process uses.
_used: set[Path] = set()


@dataclass(frozen=True, slots=True)
class SpooledFrame:
    """The rows of a DataFrame in files, and its columns."""

    files: tuple[RowFile, ...]
    columns: tuple[FrameColumn, ...]
    is_case_sensitive: bool


def insert_dataframe(txn: Transaction, table: Table, frame: DataFrame, settings: Sequence[tuple[str, str]] = ()) -> int:
    """Returns the number of rows; `settings` are the pipeline settings of the session."""
    backend = load_spark()
    columns, is_case_sensitive = _describe(frame, backend)
    query = plan_frame(table, columns, is_case_sensitive)
    parts, epoch = txn.state.parts, txn.state.epoch.epoch
    chosen = pipeline_settings(parts, settings)

    def write(load: BulkInsert, plan: WritePlan) -> int:
        rows_max = chosen.unit_rows or _FILE_ROWS_MAX
        with spooled_frame(parts, epoch, txn.state.client.interrupts, frame, rows_max) as spooled:
            inserted = FileInsert(txn, plan, query, lambda: backend, chosen)
            return inserted.write(spooled.files, load) if spooled.files else 0

    return txn.writes.insert_bulk(table, write, checked=True)


def _describe(frame: DataFrame, backend: SparkBackend) -> tuple[tuple[FrameColumn, ...], bool]:
    columns = tuple(FrameColumn(*column) for column in backend.frame_writes.describe_frame(frame))
    return columns, backend.frame_writes.is_case_sensitive(frame)


@contextmanager
def spooled_frame(
    parts: NodeParts, epoch: Epoch, interrupts: SessionInterrupts, frame: DataFrame, rows_max: int = _FILE_ROWS_MAX
) -> Iterator[SpooledFrame]:
    """The files are there while the context is open; each has at most about `rows_max` rows."""
    backend = load_spark()
    check_shared(parts, frame.sparkSession, "writing a DataFrame")
    columns, is_case_sensitive = _describe(frame, backend)
    nodes = parts.catalog.nodes
    sweep_spool(parts.data, lambda: {node.epoch for node in nodes() if node.live and node.epoch != epoch})
    token = parts.entropy.token(8)
    with spool_folder(parts.data, epoch, token) as folder:
        names = [source_name(place) for place in range(len(columns))]
        tag = f"seachange-{token.hex()}"
        rows_max = min(rows_max, _FILE_ROWS_MAX)
        backend.frame_writes.write_frame(frame, names, folder, rows_max, tag, interrupts)
        yield SpooledFrame(tuple(_list_files(folder)), columns, is_case_sensitive)


def _list_files(folder: Path) -> list[RowFile]:
    """The non-empty files, in the order of their partitions."""
    found = []
    for path in sorted(folder.glob("part-*")):
        with reading(path.name):
            rows = pq.read_metadata(path).num_rows
        if rows:
            found.append(RowFile(str(path), rows, path.stat().st_size))
    return found


# Spool folders: rows on their way into a table, shared by all machines that write them.
#
# **Invariant:** a folder's name begins with the epoch of its owner, and the folder is removed with its owner's work.
# What a dead owner, or a Spark task that did not stop in time, has left behind is removed by the next writer.
@contextmanager
def spool_folder(data: Path, epoch: Epoch, token: bytes) -> Iterator[Path]:
    """A name for a folder that does not exist yet."""
    parent = data / _FOLDER
    with named_errors("create", str(parent)):
        create_folder(parent)
    folder = parent / f"{epoch}-{token.hex()}"
    _used.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _used.discard(folder)


def sweep_spool(data: Path, others: Callable[[], Collection[Epoch]]) -> None:
    """Removes folders that are used neither here nor by other live nodes. The nodes are read after the folders: a node
    that registers in between has a folder that is not in the list."""
    found = list((data / _FOLDER).glob("*-*"))
    living = others() if found else ()
    for folder in found:
        epoch = folder.name.partition("-")[0]
        if epoch.isdigit() and int(epoch) not in living and folder not in _used:
            shutil.rmtree(folder, ignore_errors=True)
