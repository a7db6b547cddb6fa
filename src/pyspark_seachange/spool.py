"""Rows on their way into a table: each task writes files to a folder that its machine and the driver's share.

**Invariant:** a file is used only if the task that wrote it reported it, so attempts that Spark repeats leave nothing
but files that are removed with their folder. A file that is missing when its rows are to be read is an error.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from seachange.engine.api import Connection
from seachange.engine.dataframes.file_insert import RowFile
from seachange.engine.datasource.write_shape import WriteShape
from seachange.runtime.permissions import create_folder

_ROWS_MAX = 500_000
_FOLDER = "spool"
_PREFIX = "source-"
# What a driver that was killed has left behind is removed by a later one.
_KEPT_US = 24 * 3_600_000_000


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """What a task has written, and what the write was planned for."""

    files: tuple[RowFile, ...]
    shape: WriteShape


def new_folder(db: Connection) -> Path:
    """The name of a folder, which tasks create."""
    parts = db.session.node.parts
    parent = parts.data / _FOLDER
    create_folder(parent)
    now_us = parts.clock.wall_us()
    for old in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            newest_us = max(int(each.stat().st_mtime * 1e6) for each in (old, *old.iterdir()))
            if newest_us < now_us - _KEPT_US:
                shutil.rmtree(old, ignore_errors=True)
    return parent / f"{_PREFIX}{parts.entropy.token(8).hex()}"


def write_files(batches: Iterator[pa.RecordBatch], folder: Path) -> tuple[RowFile, ...]:
    """The rows of a task in files of at most about half a million; without rows there are none."""
    context = TaskContext.get()
    assert context is not None
    # Unique in the application: of each attempt.
    task = context.taskAttemptId()
    found: list[RowFile] = []
    batch = next(batches, None)
    while batch is not None:
        folder.mkdir(exist_ok=True)
        path, rows = folder / f"{task}-{len(found)}.parquet", 0
        with pq.ParquetWriter(path, batch.schema) as writer:
            while batch is not None and rows < _ROWS_MAX:
                writer.write_batch(batch)
                rows += batch.num_rows
                batch = next(batches, None)
        if rows:
            found.append(RowFile(str(path), rows, path.stat().st_size))
    return tuple(found)


def reported(messages: Iterable[WriterCommitMessage | None]) -> list[WrittenFiles]:
    return [message for message in messages if isinstance(message, WrittenFiles)]


def remove_files(messages: Sequence[WriterCommitMessage | None]) -> None:
    """The files that were reported, and their folder when it is empty."""
    paths = [Path(file.path) for message in reported(messages) for file in message.files]
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        with suppress(OSError):
            folder.rmdir()
