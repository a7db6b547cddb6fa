"""Batches that streams have written: recorded in a table, by the commit that has their rows.

**Invariant:** a batch of a writer is in a table once: its record and its rows are in one transaction, and a batch whose
record, or a later one, is there is not written again.
"""

from __future__ import annotations

import json

from seachange import errors
from seachange.engine.datasource.write_shape import WriteShape
from seachange.engine.session.session import Session
from seachange.model.ids import ColumnId

_SCHEMA = "CREATE SCHEMA IF NOT EXISTS seachange_streams"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS seachange_streams.written (writer_id text, table_id bigint, batch_id bigint NOT NULL, "
    "columns jsonb NOT NULL, written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (writer_id, table_id))"
)
# What a name meant is kept when its column has gone.
_RECORD = (
    "INSERT INTO seachange_streams.written AS w (writer_id, table_id, batch_id, columns) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (writer_id, table_id) DO UPDATE "
    "SET batch_id = excluded.batch_id, columns = w.columns || excluded.columns, written_at = now() "
    "WHERE w.batch_id < excluded.batch_id"
)
_COLUMNS = "SELECT columns FROM seachange_streams.written WHERE writer_id = $1 ORDER BY written_at DESC LIMIT 1"


def prepare_records(session: Session) -> None:
    """The table of records is there from now on."""
    for statement in (_SCHEMA, _TABLE):
        try:
            session.execute(statement)
        except (errors.DuplicateTable, errors.DuplicateSchema, errors.UniqueViolation):
            # Another stream has just made it.
            session.execute(statement)


def known_columns(session: Session, writer_id: str) -> dict[str, ColumnId]:
    """What the names of the writer's columns meant when it last wrote."""
    found = session.execute(_COLUMNS, (writer_id,)).rows
    return json.loads(found[0][0]) if found else {}


def record_batch(session: Session, writer_id: str, shape: WriteShape, batch_id: int) -> bool:
    """In a block, before the rows are written. False if the batch has been written already."""
    columns = json.dumps({given.name: id_ for given, id_ in shape.columns})
    return session.execute(_RECORD, (writer_id, shape.table_id, batch_id, columns)).count > 0
