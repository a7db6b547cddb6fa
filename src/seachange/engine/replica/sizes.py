"""The estimated size of a table, for planning, without reading rows."""

from __future__ import annotations

from seachange.planner.known_schema import TableSize
from seachange.storage.image import SnapshotParts
from seachange.storage.plan import Overlay


def measure_table(parts: SnapshotParts, own: Overlay) -> TableSize:
    """Rows that the transaction itself removed or replaced still count, so 0 rows means that the table is empty."""
    files = (*parts.files, *own.files)
    inline = [rows for _, rows in parts.inline] + ([own.rows] if own.rows is not None else [])
    return TableSize(
        rows=sum(f.segment.rows - len(f.superseded) for f in files) + sum(rows.num_rows for rows in inline),
        bytes=sum(f.segment.size_bytes for f in files) + sum(rows.nbytes for rows in inline),
        files=len(files),
    )
