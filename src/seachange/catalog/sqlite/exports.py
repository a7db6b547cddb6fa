"""Exported snapshots in SQLite, inside one write transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple

from seachange.catalog.rows import check_snapshot
from seachange.model.exports import ExportRecord
from seachange.model.ids import Epoch, TableId

_CHECK = "SELECT s.floor, n.live FROM sequencer s LEFT JOIN node n ON n.epoch = ?"
_RECORD = "INSERT OR REPLACE INTO export VALUES (?, ?, ?, ?, ?, ?)"
_FORGET = "DELETE FROM export WHERE table_id = ? AND snapshot = ?"


def record_export(db: sqlite3.Connection, epoch: Epoch, record: ExportRecord) -> None:
    check_snapshot(epoch, record.held, db.execute(_CHECK, (epoch,)).fetchone())
    db.execute(_RECORD, astuple(record))


def forget_exports(db: sqlite3.Connection, table_id: TableId, snapshots: Sequence[int]) -> None:
    db.executemany(_FORGET, [(table_id, snapshot) for snapshot in snapshots])
