"""The views of the schema `seachange`: what the engine tells of itself, as relations that any query can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seachange.model.scan import Scan
from seachange.model.types import BIGINT, TEXT, Kind, SqlType
from seachange.sql.pgcatalog.scan import find_relation
from seachange.storage.arrow import arrow_type

SYSTEM_SCHEMA = "seachange"

_BOOLEAN = SqlType(Kind.BOOLEAN)
_DOUBLE = SqlType(Kind.DOUBLE)
_MOMENT = SqlType(Kind.TIMESTAMPTZ)

# By name, the columns of each view.
SYSTEM_VIEWS: dict[str, dict[str, SqlType]] = {
    "jobs": {
        "id": BIGINT,
        "statement": TEXT,
        "status": TEXT,
        "phase": TEXT,
        "stage": TEXT,
        "progress": _DOUBLE,
        "rows_done": BIGINT,
        "rows_total": BIGINT,
        "rows_per_second": _DOUBLE,
        "eta": _MOMENT,
        "waiting_for": TEXT,
        "error": TEXT,
        "sqlstate": TEXT,
        "hint": TEXT,
        "can_be_canceled": _BOOLEAN,
        "request": TEXT,
        "node": TEXT,
        "created": _MOMENT,
        "updated": _MOMENT,
    },
    "job_stages": {
        "job_id": BIGINT,
        "number": BIGINT,
        "phase": TEXT,
        "stage": TEXT,
        "began": _MOMENT,
        "duration_ms": BIGINT,
        "rows": BIGINT,
    },
    "leases": {
        "node": TEXT,
        "epoch": BIGINT,
        "session": TEXT,
        "snapshot": BIGINT,
        "since": _MOMENT,
        "table_schema": TEXT,
        "table_name": TEXT,
        "version": BIGINT,
        "newest_version": BIGINT,
    },
    "nodes": {
        "epoch": BIGINT,
        "name": TEXT,
        "live": _BOOLEAN,
        "low_water": BIGINT,
        "write_mark": BIGINT,
        "expiry_ms": BIGINT,
        "format": BIGINT,
        "release": BIGINT,
        "latency_ms": _DOUBLE,
        "usual_latency_ms": _DOUBLE,
    },
    "descriptors": {
        "id": BIGINT,
        "table_schema": TEXT,
        "table_name": TEXT,
        "version": BIGINT,
        "min_version": BIGINT,
        "element": TEXT,
        "name": TEXT,
        "state": TEXT,
    },
    "layouts": {
        "table_schema": TEXT,
        "table_name": TEXT,
        "layout_id": BIGINT,
        "is_current": _BOOLEAN,
        "columns": TEXT,
        "segments": BIGINT,
        "rows": BIGINT,
    },
    "segments": {
        "table_schema": TEXT,
        "table_name": TEXT,
        "index_name": TEXT,
        "segment_id": BIGINT,
        "kind": TEXT,
        "layout_id": BIGINT,
        "is_base": _BOOLEAN,
        "seq": BIGINT,
        "rows": BIGINT,
        "size_bytes": BIGINT,
    },
    "events": {"moment": _MOMENT, "job_id": BIGINT, "seq": BIGINT, "event": TEXT},
}


def is_system(schema: str | None, name: str) -> bool:
    return schema == SYSTEM_SCHEMA and name in SYSTEM_VIEWS


def is_told(schema: str | None, name: str) -> bool:
    """Whether a name means a relation that the engine makes up: one of these, or of the catalogs of PostgreSQL."""
    return is_system(schema, name) or find_relation(schema, name) is not None


# What may hold values of rows, or words of statements: superusers see it.
_PRIVATE: dict[str, frozenset[str]] = {
    "jobs": frozenset({"statement", "error", "hint"}),
    "events": frozenset({"event"}),
}
HIDDEN = "<insufficient privilege>"


def without_private(name: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    private = _PRIVATE.get(name, frozenset())
    hides = [column in private for column in SYSTEM_VIEWS[name]]
    return [
        tuple(HIDDEN if hidden and value is not None else value for value, hidden in zip(row, hides, strict=True))
        for row in rows
    ]


def scan_system(name: str, rows: Sequence[tuple[Any, ...]], number: int) -> Scan:
    """The rows of a view as one Arrow table; `number` tells the references of one statement apart."""
    columns = SYSTEM_VIEWS[name]
    schema = pa.schema([pa.field(column, arrow_type(type_)) for column, type_ in columns.items()])
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=schema)
    relation = f"system_{name}_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: table}, "system view")  # noqa: S608
