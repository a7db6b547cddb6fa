"""The tables of a SQLite catalog, as numbered migrations.

The log has a row of sequence 0, before every commit, so that it is never empty and the head is its last row.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.sqlite.connections import SqliteWriter
from seachange.runtime.faults import reach

# Inline batches are keyed by sequence and number in one integer, the cheapest key in SQLite.
POSITION_BITS = 16

_FORMAT_1 = (
    """CREATE TABLE sequencer (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        boot_id TEXT NOT NULL,
        floor INTEGER NOT NULL,
        next_epoch INTEGER NOT NULL,
        next_id INTEGER NOT NULL,
        next_segment INTEGER NOT NULL,
        next_generation INTEGER NOT NULL)""",
    "INSERT INTO sequencer VALUES (1, 0, '', 0, 1, 1, 1, 1)",
    """CREATE TABLE node (
        epoch INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        live INTEGER NOT NULL,
        low_water INTEGER NOT NULL,
        heartbeat_us INTEGER NOT NULL,
        expiry_ms INTEGER NOT NULL,
        format INTEGER NOT NULL)""",
    """CREATE TABLE log (
        seq INTEGER PRIMARY KEY,
        timestamp_us INTEGER NOT NULL,
        commit_id BLOB NOT NULL UNIQUE,
        writes BLOB NOT NULL,
        shares BLOB NOT NULL,
        bulk BLOB NOT NULL,
        touched BLOB NOT NULL,
        parts INTEGER NOT NULL)""",
    "INSERT INTO log VALUES (0, 0, x'', x'', x'', x'', x'', 0)",
    """CREATE TABLE burned (
        commit_id BLOB PRIMARY KEY,
        timestamp_us INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE batch (
        position INTEGER PRIMARY KEY,
        index_id INTEGER NOT NULL,
        layout_id INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        payload BLOB NOT NULL)""",
    # Entries of this index end with the position, in order.
    "CREATE INDEX batch_index ON batch (index_id)",
    """CREATE TABLE intent (
        segment_id INTEGER PRIMARY KEY,
        epoch INTEGER NOT NULL)""",
    """CREATE TABLE segment (
        id INTEGER PRIMARY KEY,
        index_id INTEGER NOT NULL,
        layout_id INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        fresh INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        key_min BLOB NOT NULL,
        key_max BLOB NOT NULL,
        delta INTEGER)""",
    "CREATE INDEX segment_delta ON segment (index_id, delta) WHERE delta IS NOT NULL",
    "CREATE INDEX segment_seq ON segment (delta) WHERE delta IS NOT NULL",
    "CREATE TABLE garbage (segment_id INTEGER PRIMARY KEY)",
    """CREATE TABLE generation (
        id INTEGER PRIMARY KEY,
        index_id INTEGER NOT NULL,
        base INTEGER NOT NULL,
        swap INTEGER NOT NULL)""",
    "CREATE INDEX generation_index ON generation (index_id, id)",
    "CREATE INDEX generation_swap ON generation (swap)",
    """CREATE TABLE generation_member (
        generation_id INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        segment_id INTEGER NOT NULL,
        deleted BLOB NOT NULL,
        PRIMARY KEY (generation_id, ordinal))""",
    "CREATE INDEX member_segment ON generation_member (segment_id)",
    """CREATE TABLE descriptor (
        id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        name TEXT NOT NULL,
        live INTEGER NOT NULL,
        min_version INTEGER NOT NULL,
        changed INTEGER NOT NULL)""",
    "CREATE INDEX descriptor_name ON descriptor (name)",
    """CREATE TABLE descriptor_version (
        id INTEGER NOT NULL,
        version INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        body TEXT,
        PRIMARY KEY (id, version))""",
    "CREATE INDEX descriptor_seq ON descriptor_version (seq)",
    # The descriptor that an index belongs to, and the sequence from which on no version has it any more.
    """CREATE TABLE index_owner (
        index_id INTEGER PRIMARY KEY,
        descriptor_id INTEGER NOT NULL,
        dropped INTEGER)""",
    "CREATE INDEX owner_descriptor ON index_owner (descriptor_id)",
    """CREATE TABLE claim (
        resource TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL) WITHOUT ROWID""",
)

# Locks between nodes, and their waiters.
_FORMAT_2 = (
    """CREATE TABLE lock (
        key INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        actor INTEGER NOT NULL,
        scope INTEGER NOT NULL,
        strength INTEGER NOT NULL,
        guard INTEGER NOT NULL,
        PRIMARY KEY (key, epoch, actor, scope)) WITHOUT ROWID""",
    "CREATE INDEX lock_guard ON lock (guard)",
    "CREATE INDEX lock_owner ON lock (epoch, actor, scope)",
    """CREATE TABLE lock_wait (
        turn INTEGER PRIMARY KEY,
        key INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        actor INTEGER NOT NULL,
        strength INTEGER NOT NULL,
        UNIQUE (epoch, actor))""",
    "CREATE INDEX lock_wait_key ON lock_wait (key)",
)

# Jobs with their files, the event log, and the write marks of nodes.
_FORMAT_3 = (
    "ALTER TABLE node ADD COLUMN write_mark INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE node ADD COLUMN holders TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE sequencer ADD COLUMN next_job INTEGER NOT NULL DEFAULT 1",
    """CREATE TABLE job (
        id INTEGER PRIMARY KEY,
        revision INTEGER NOT NULL,
        status TEXT NOT NULL,
        request TEXT NOT NULL DEFAULT '',
        descriptors BLOB NOT NULL,
        body TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        created_us INTEGER NOT NULL,
        updated_us INTEGER NOT NULL,
        updated_seq INTEGER NOT NULL)""",
    "CREATE INDEX job_open ON job (id) WHERE status NOT IN ('succeeded', 'failed', 'canceled')",
    """CREATE TABLE job_file (
        segment_id INTEGER PRIMARY KEY,
        job_id INTEGER NOT NULL)""",
    "CREATE INDEX job_file_job ON job_file (job_id)",
    """CREATE TABLE event (
        id INTEGER PRIMARY KEY,
        timestamp_us INTEGER NOT NULL,
        job_id INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        text TEXT NOT NULL)""",
    "CREATE INDEX event_time ON event (timestamp_us)",
)

# The state of sequences. A sequence that is restarted uses the next run.
_FORMAT_4 = (
    """CREATE TABLE sequence (
        id INTEGER NOT NULL,
        run INTEGER NOT NULL,
        last INTEGER NOT NULL,
        called INTEGER NOT NULL,
        PRIMARY KEY (id, run)) WITHOUT ROWID""",
)

# The release of the schema change rules that each node knows, and the agreed one.
_FORMAT_5 = (
    "ALTER TABLE node ADD COLUMN release INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE sequencer ADD COLUMN release INTEGER NOT NULL DEFAULT 1",
)

# Layouts are stored as differences, which an older program cannot read.
_FORMAT_6 = ()

# The latency of the statements of a node's clients: current and usual.
_FORMAT_7 = (
    "ALTER TABLE node ADD COLUMN latency_us INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE node ADD COLUMN usual_us INTEGER NOT NULL DEFAULT 0",
)

# Requests for table locks, by number, and which of them a node has answered.
_FORMAT_8 = (
    "ALTER TABLE sequencer ADD COLUMN lock_requests INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE node ADD COLUMN answered INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX lock_table ON lock (strength) WHERE strength >= 11",
)

# The id of the database, and checksums of inline batches; rows of an older program have none.
_FORMAT_9 = (
    "ALTER TABLE sequencer ADD COLUMN database_id TEXT",
    "ALTER TABLE batch ADD COLUMN checksum INTEGER",
)

# Checksums of descriptors; rows of an older program have none.
_FORMAT_10 = ("ALTER TABLE descriptor_version ADD COLUMN checksum INTEGER",)

# Rows that violate constraints which are not committed yet, beside the log entries of their commits.
_FORMAT_11 = (
    """CREATE TABLE violation
        (seq INTEGER NOT NULL, key INTEGER NOT NULL, text TEXT NOT NULL, session TEXT NOT NULL)""",
)

# Migration n upgrades a catalog from format n - 1 to format n.
MIGRATIONS = (
    *(_FORMAT_1, _FORMAT_2, _FORMAT_3, _FORMAT_4, _FORMAT_5, _FORMAT_6, _FORMAT_7),
    *(_FORMAT_8, _FORMAT_9, _FORMAT_10, _FORMAT_11),
)

_HAS_TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'sequencer'"
_HAS_OTHERS = "SELECT count(*) FROM sqlite_master"
_FORMAT = "SELECT format FROM sequencer"
_SET_FORMAT = "UPDATE sequencer SET format = ?"
# A program that knows only the older format must not continue to write it.
_END_OLDER_NODES = "UPDATE node SET live = 0 WHERE format < ?"


_IDENTITY = "SELECT database_id FROM sequencer"
BIND = "UPDATE sequencer SET database_id = ? WHERE database_id IS NULL"


def format_of(db: sqlite3.Connection) -> int:
    """The catalog's format, 0 before the first migration."""
    if db.execute(_HAS_TABLES).fetchone()[0] == 0:
        return 0
    return int(db.execute(_FORMAT).fetchone()[0])


def has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def read_identity(db: sqlite3.Connection) -> str | None:
    found: str | None = db.execute(_IDENTITY).fetchone()[0]
    return found


def check_format(found: int, path: Path) -> None:
    if found > FORMAT:
        raise errors.CatalogFormatTooNew(catalog=str(path), found=found, known=FORMAT)


def migrate(writer: SqliteWriter, path: Path, creates: bool = True) -> None:
    """Upgrades the catalog to this program's format, one transaction per migration."""
    while True:
        with writer as db:
            found = format_of(db)
            check_format(found, path)
            if found == FORMAT:
                return
            if found == 0:
                _check_new(db, path, creates)
            reach("migration.started")
            migrate_once(db, found)
            reach("migration.applied")
        reach("migration.committed")


def migrate_once(db: sqlite3.Connection, found: int) -> None:
    for statement in MIGRATIONS[found]:
        db.execute(statement)
    db.execute(_SET_FORMAT, (found + 1,))
    db.execute(_END_OLDER_NODES, (found + 1,))


def _check_new(db: sqlite3.Connection, path: Path, creates: bool) -> None:
    if db.execute(_HAS_OTHERS).fetchone()[0]:
        raise errors.InvalidCatalog(catalog=str(path), detail="it contains tables of another program")
    if not creates:
        raise errors.CatalogMissing(catalog=str(path))
