"""Copies of a PostgreSQL catalog as of one snapshot, as files in COPY's binary format, and their restoration.

**Invariant:** all files come from one snapshot; they are restored in one transaction, and only to an empty catalog.
"""

from __future__ import annotations

from pathlib import Path

from psycopg import sql

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.postgres.commit import PARTITION_SPAN
from seachange.catalog.postgres.connections import Connection, describe, one_snapshot
from seachange.catalog.postgres.read import query
from seachange.model.ids import Seq
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_file, create_folder

FOLDER_NAME = "catalog"
# All persistent tables. Locks, claims, violations and partitions belong to live nodes, or are recreated; inline batches
# are restored after their partitions.
_TABLES = (
    *("sequencer", "node", "log", "burned", "intent", "segment", "garbage", "generation", "generation_member"),
    *("descriptor", "descriptor_version", "index_owner", "job", "job_file", "event", "sequence", "change", "feed"),
)
_BATCH = "batch"
# Copies of older releases do not have them.
_NEWER = frozenset({"change", "feed"})
_HEAD = "SELECT seachange.head()"
_LOCK = "SELECT seachange.lock_sequencer()"
_USED = """SELECT next_epoch > 1 OR next_id > 1 OR seachange.head() > 0 OR database_id IS NOT NULL
    FROM seachange.sequencer"""
_PARTITIONED = "SELECT partitioned FROM seachange.sequencer"
_SET_STATE = "UPDATE seachange.sequencer SET partitioned = %b, format = %b, database_id = %s"
_ADD_PARTITIONS = "SELECT seachange.add_partitions(%b, %b)"
_END_NODES = "UPDATE seachange.node SET live = false"
_GO_ON = """SELECT setval(pg_get_serial_sequence('seachange.event', 'id'), coalesce(max(id), 0) + 1, false)
    FROM seachange.event"""
_OUT = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT binary)")
_IN = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)")
_COLUMNS = """SELECT attname FROM pg_catalog.pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_EMPTY = sql.SQL("DELETE FROM {}")
_CHUNK_BYTES = 1 << 20
# The header of COPY's binary format (eleven bytes, flags, an empty extension); then each row begins with the number of
# its values.
_HEADER_BYTES, _COUNT_BYTES = 19, 2


def copy_catalog(db: Connection, folder: Path) -> Seq:
    """Returns the last sequence in the copy."""
    place = folder / FOLDER_NAME
    with named_errors("create", str(place)):
        create_folder(place)
    with one_snapshot(db):
        head = int(query(db, _HEAD)[0][0])
        for table in (*_TABLES, _BATCH):
            _write(db, table, place / table)
    return Seq(head)


def fill_catalog(db: Connection, url: str, folder: Path, identity: str) -> None:
    """Restores a copy of this format or an older one: later formats only append columns."""
    place = folder / FOLDER_NAME
    with db.transaction():
        db.execute(_LOCK)
        if query(db, _USED)[0][0]:
            raise errors.InvalidCatalog(
                catalog=describe(url), detail="it is in use; a backup can only be restored to a new one"
            )
        (partitioned,) = query(db, _PARTITIONED)[0]
        for table in _TABLES:
            db.execute(_EMPTY.format(_name(table)))
            if table not in _NEWER or (place / table).exists():
                _read(db, table, place / table)
        db.execute(_SET_STATE, (partitioned, FORMAT, identity))
        db.execute(_ADD_PARTITIONS, (int(query(db, _HEAD)[0][0]) + PARTITION_SPAN, PARTITION_SPAN))
        _read(db, _BATCH, place / _BATCH)
        db.execute(_END_NODES)
        db.execute(_GO_ON)


def _name(table: str) -> sql.Identifier:
    return sql.Identifier("seachange", table)


def _write(db: Connection, table: str, path: Path) -> None:
    create_file(path)
    with named_errors("write", str(path)), path.open("wb") as file, db.cursor().copy(_OUT.format(_name(table))) as data:
        for chunk in data:
            file.write(chunk)


def _read(db: Connection, table: str, path: Path) -> None:
    with named_errors("read", str(path)), path.open("rb") as file:
        head = file.read(_HEADER_BYTES + _COUNT_BYTES)
        count = int.from_bytes(head[_HEADER_BYTES:], "big", signed=True)
        # Without rows there is only the trailer, a count of -1.
        names = [name for (name,) in query(db, _COLUMNS, f"seachange.{table}")][: count if count >= 0 else None]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        with db.cursor().copy(_IN.format(_name(table), columns)) as data:
            data.write(head)
            while chunk := file.read(_CHUNK_BYTES):
                data.write(chunk)
