"""The views of the schema `seachange`, with the names and types of their columns."""

from __future__ import annotations

import re
from typing import Final

from seachange.values.types import KIND_BY_ALIAS, SqlType

SYSTEM_SCHEMA = "seachange"

# The name of each view, and its columns; further lines are indented.
_VIEWS: Final = """
jobs id:int8 statement:text status:text phase:text stage:text progress:float8 rows_done:int8 rows_total:int8
    rows_per_second:float8 eta:timestamptz waiting_for:text error:text sqlstate:text hint:text can_be_canceled:bool
    request:text node:text session:text created:timestamptz updated:timestamptz age_ms:int8 written_bytes:int8
    hidden_indexes:int8 hidden_entries:int8
job_stages job_id:int8 number:int8 phase:text stage:text began:timestamptz duration_ms:int8 rows:int8
changes id:int8 statement:text role:text objects:text began:timestamptz published:timestamptz jobs:text strategy:text
    estimated_rows:int8 rows:int8 estimated_bytes:int8 bytes:int8 estimated_ms:int8 duration_ms:int8
    estimated_waits:int8 waits:int8 waited_ms:int8 undoable_until:timestamptz undo_bytes:int8
leases node:text epoch:int8 session:text snapshot:int8 since:timestamptz table_schema:text table_name:text
    version:int8 newest_version:int8 is_changing:bool job_id:int8 statement:text
sessions node:text epoch:int8 session:text pid:int4 role:text database:text application:text client_address:text
    client_port:int4 began:timestamptz transaction_began:timestamptz statement_began:timestamptz
    state_changed:timestamptz state:text waits_for:text blocked_by:text statement:text
statements node:text epoch:int8 role:text database:text statement:text calls:int8 failures:int8 total_ms:float8
    mean_ms:float8 longest_ms:float8 rows:int8
waits node:text epoch:int8 session:text mode:text waits_for:text blocked_by:text
nodes epoch:int8 name:text live:bool low_water:int8 write_mark:int8 expiry_ms:int8 format:int8 release:int8
    latency_ms:float8 usual_latency_ms:float8
descriptors id:int8 table_schema:text table_name:text version:int8 min_version:int8 element:text name:text
    state:text
layouts table_schema:text table_name:text layout_id:int8 is_current:bool columns:text segments:int8 rows:int8
shapes name:text as_of:int8 tables:int8 roles:text sessions:text columns_held:text
segments table_schema:text table_name:text index_name:text segment_id:int8 kind:text layout_id:int8 is_base:bool
    seq:int8 rows:int8 size_bytes:int8
cache store:text folder:text size_max_bytes:int8 files:int8 pinned_files:int8 size_bytes:int8 hits:int8 misses:int8
    downloaded_bytes:int8 uploaded_bytes:int8 evictions:int8 excerpt_bytes:int8
iceberg_tables table_schema:text table_name:text enabled:bool format:int8 reason:text snapshot:int8
    exported:timestamptz expires:timestamptz snapshots:int8 metadata_location:text
feeds name:text owner:text tables:text position:int8 lag_rows:int8 lag_seconds:float8 lag_bytes:int8
    created:timestamptz ended:text
events moment:timestamptz job_id:int8 seq:int8 event:text
"""


def _read(view: str) -> tuple[str, dict[str, SqlType]]:
    name, *columns = view.split()
    return name, {column: SqlType(KIND_BY_ALIAS[type_]) for column, type_ in (each.split(":") for each in columns)}


# By name, the columns of each view.
SYSTEM_VIEWS: dict[str, dict[str, SqlType]] = dict(map(_read, re.split(r"\n(?! )", _VIEWS.strip())))
# Those of the function `feed`, which is called with arguments.
_, FEED_COLUMNS = _read(
    "feed seq:int8 committed_at:timestamptz ordinal:int8 relation:text op:text before:jsonb after:jsonb schema:jsonb"
)
