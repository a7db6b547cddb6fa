"""The shape of base segments."""

from __future__ import annotations

from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import SegmentKind
from seachange.storage.segment_footer import ROW_GROUP_ROWS, SECONDARY_ROW_GROUP_ROWS
from seachange.storage.segment_writer import SegmentShape


def base_shape(table: Table, index: Index) -> SegmentShape:
    """Segments of a generation, in the current layout."""
    return SegmentShape(
        columns=table.stored_columns(index, table.layout),
        key=table.entry_key(index),
        index_id=index.id,
        layout_id=table.layout.id,
        kind=SegmentKind.DATA,
        fresh=True,
        row_group_rows=ROW_GROUP_ROWS if index.id == table.primary.id else SECONDARY_ROW_GROUP_ROWS,
        compression=table.compression,
    )
