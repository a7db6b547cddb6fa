"""Writing a frame: executors write its rows to files, the driver puts them into the table by one commit.

With the name of a writer and the number of a batch the commit also records the batch: one that was recorded is left
out.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_seachange.options import SourceOptions, read_options, shown_errors
from pyspark_seachange.spool import WrittenFiles, new_folder, reported, write_files
from seachange import errors
from seachange.engine.datasource.row_files import RowFiles, append_rows, in_block, merge_rows, overwrite_rows
from seachange.engine.datasource.write_shape import NOT_KNOWN, WriteShape, plan_write
from seachange.engine.datasource.written_batches import known_columns, prepare_records, record_batch
from seachange.engine.session.session import Session
from seachange.model.ids import ColumnId
from seachange.pipeline.spark.frame_types import written_type
from seachange.sql.copy.frame_load import FrameColumn


def frame_columns(schema: StructType) -> list[FrameColumn]:
    named = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return [FrameColumn(name, type_, written_type(type_)) for name, type_ in named]


def write_in_block(session: Session, shape: WriteShape, files: RowFiles, overwrite: bool) -> int:
    """In the open block, with the names that the columns have in it."""
    table = session.in_transaction(shape.find)
    rows = RowFiles(files.files, shape.columns_of(table))
    if shape.keys:
        return merge_rows(session, shape.find, rows, shape.keys_of(table))
    return (overwrite_rows if overwrite else append_rows)(session, shape.find, rows)


def write_once(
    session: Session, shape: WriteShape, files: RowFiles, overwrite: bool, writer_id: str, batch_id: int
) -> None:
    """In the open block, unless the batch was written before."""
    if record_batch(session, writer_id, shape, batch_id):
        write_in_block(session, shape, files, overwrite)


class TableWriter(DataSourceArrowWriter):
    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        with shown_errors():
            self._options = read_options(given)
            self._overwrite = overwrite
            self._batch = _batch_of(self._options)
            keys = self._options.names("merge_keys")
            if overwrite and keys:
                raise errors.InvalidParameterValue(
                    detail='merge_keys need mode("append"): rows without a counterpart are kept'
                )
            with closing(self._options.connect()) as db:
                known: Mapping[str, ColumnId] = NOT_KNOWN
                if self._batch is not None:
                    prepare_records(db.session)
                    known = known_columns(db.session, self._batch[0])
                self._shape = plan_write(db.session, self._options.table, frame_columns(schema), keys, known)
                self._folder = new_folder(db)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        return WrittenFiles(write_files(iterator, self._folder), self._shape)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        rows = RowFiles(tuple(file for message in reported(messages) for file in message.files), ())
        try:
            with shown_errors(), closing(self._options.connect()) as db:
                if self._batch is None:
                    work = partial(write_in_block, db.session, self._shape, rows, self._overwrite)
                    in_block(db.session, work)
                else:
                    in_block(
                        db.session, partial(write_once, db.session, self._shape, rows, self._overwrite, *self._batch)
                    )
        finally:
            self.abort(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _batch_of(options: SourceOptions) -> tuple[str, int] | None:
    """The writer and the batch, for a program that calls `write` in `foreachBatch`."""
    writer_id, batch_id = options.text("writer_id"), options.text("batch_id")
    if not writer_id and not batch_id:
        return None
    if not writer_id or not batch_id.isdecimal():
        raise errors.InvalidParameterValue(
            detail="writer_id and batch_id go together: the name of a stream and the number that foreachBatch passes"
        )
    return writer_id, int(batch_id)
