"""Writing a stream: each micro-batch is one commit, which has its rows and the record of the batch.

Spark repeats a batch whose end it has not noted, with the same number: it is recognised and left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_seachange.batch_write import frame_columns, write_once
from pyspark_seachange.options import SourceOptions, read_options, shown_errors
from pyspark_seachange.spool import WrittenFiles, new_folder, remove_files, reported, write_files
from seachange import errors
from seachange.engine.api import Connection
from seachange.engine.datasource.row_files import RowFiles, in_block
from seachange.engine.datasource.write_shape import WriteShape, plan_write
from seachange.engine.datasource.written_batches import known_columns, prepare_records

_ID_FILE = "seachange_writer_id"
_CHECKPOINT = "checkpointlocation"


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark makes two for each batch: one that goes to the executors, and one that commits. What the first has planned
    comes back with the messages of the tasks."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        with shown_errors():
            self._options = read_options(given)
            self._schema = schema
            # The complete mode: each batch has all rows of the result.
            self._overwrite = overwrite
            self._planned: tuple[WriteShape, Path] | None = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        assert self._planned is not None
        shape, folder = self._planned
        return WrittenFiles(write_files(iterator, folder), shape)

    def __getstate__(self) -> dict[str, object]:
        """The one that is sent to the executors plans."""
        if self._planned is None:
            with shown_errors(), closing(self._options.connect()) as db:
                prepare_records(db.session)
                self._planned = self._plan(db), new_folder(db)
        return self.__dict__

    def _plan(self, db: Connection) -> WriteShape:
        options = self._options
        known = known_columns(db.session, _writer_id(options, db))
        columns = frame_columns(self._schema)
        return plan_write(db.session, options.table, columns, options.names("merge_keys"), known)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        found = reported(messages)
        with shown_errors(), closing(self._options.connect()) as db:
            shape = found[0].shape if found else self._plan(db)
            rows = RowFiles(tuple(file for message in found for file in message.files), ())
            writer_id = _writer_id(self._options, db)
            in_block(db.session, partial(write_once, db.session, shape, rows, self._overwrite, writer_id, batchId))
        remove_files(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        remove_files(messages)


def _writer_id(options: SourceOptions, db: Connection) -> str:
    """The option, or a name in a file beside the checkpoint: a new checkpoint is another writer."""
    if options.text("writer_id"):
        return options.text("writer_id")
    place = urlsplit(options.text(_CHECKPOINT))
    if not place.path or place.scheme not in ("", "file"):
        raise errors.InvalidParameterValue(
            detail="a stream into a table needs option writer_id, or a checkpointLocation that is a local folder: "
            "by its name, batches that Spark repeats are recognised"
        )
    path = Path(place.path) / _ID_FILE
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{_ID_FILE}")
        with draft.open("w") as file:
            file.write(db.session.node.parts.entropy.token(16).hex())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text()
