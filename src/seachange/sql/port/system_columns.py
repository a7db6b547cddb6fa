"""The views of the schema `seachange`, with the names and types of their columns."""

from __future__ import annotations

from seachange.values.types import BIGINT, TEXT, Kind, SqlType

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
        "session": TEXT,
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
    "waits": {
        "node": TEXT,
        "epoch": BIGINT,
        "session": TEXT,
        "mode": TEXT,
        "waits_for": TEXT,
        "blocked_by": TEXT,
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
