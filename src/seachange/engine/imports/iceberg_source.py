"""Iceberg tables as Parquet files: pyiceberg reads them, with deletes and columns by their ids, into a spool folder.

**Invariant:** each file that the table's metadata names is checked before it is opened, like the metadata itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.engine.dataframes.file_insert import RowFile
from seachange.engine.imports.import_source import ImportSource
from seachange.iceberg.encoders import load_reader
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_folder

_FILE_ROWS_MAX = 500_000


def iceberg_source(
    named: str, folder: Path, check_place: Callable[[str], None], check_interrupt: Callable[[], None]
) -> ImportSource:
    """The table's current rows, in files of the folder."""
    reader = load_reader()
    with named_errors("create", str(folder)):
        create_folder(folder)
    with _problems(named, reader):
        table = reader.open_table(named, check_place)
        rows = table.scan().to_arrow_batch_reader()
        sample = str(folder / "columns.parquet")
        pq.write_table(rows.schema.empty_table(), sample)
        files = tuple(_spool(rows, folder, check_interrupt))
        fields = table.schema()
        key = tuple(sorted(fields.identifier_field_names()))
        required = frozenset(each.name for each in fields.fields if each.required)
    return ImportSource(named, sample, files, key, required)


def _spool(rows: pa.RecordBatchReader, folder: Path, check_interrupt: Callable[[], None]) -> Iterator[RowFile]:
    batch: pa.RecordBatch | None = next(rows, None)
    number = 0
    while batch is not None:
        path, count = folder / f"part-{number:06}.parquet", 0
        with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
            while batch is not None and count < _FILE_ROWS_MAX:
                check_interrupt()
                writer.write_batch(batch)
                count += batch.num_rows
                batch = next(rows, None)
        number += 1
        if count:
            yield RowFile(str(path), count, path.stat().st_size)


@contextmanager
def _problems(named: str, reader: Any) -> Iterator[None]:
    try:
        yield
    except errors.Error:
        raise
    except reader.PROBLEMS as problem:
        first = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise errors.ImportFailed(source=named, detail=first) from problem
