"""Why a table cannot be read as Iceberg: what its definition says, and what its files lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from seachange.iceberg.table_schema import Unmapped, map_columns
from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.segments import Segment
from seachange.storage.arrow import column_name
from seachange.storage.warehouse import Warehouse

_FIELD_ID = b"PARQUET:field_id"


def find_obstacle(
    table: Table,
    objects: Mapping[DescriptorId, Descriptor],
    segments: Sequence[Segment],
    format_version: int,
    warehouse: Warehouse,
) -> str | None:
    """The reason; None if there is none."""
    try:
        map_columns(table, objects, (segment.layout_id for segment in segments), format_version)
        check_files(table, segments, warehouse)
    except Unmapped as problem:
        return str(problem)
    return None


def check_files(table: Table, segments: Iterable[Segment], warehouse: Warehouse) -> None:
    """Reads the schemas of the files, if the table has arrays."""
    if any(column.type.element is not None for column in table.visible_columns):
        for footer in warehouse.footers(list(segments)):
            check_elements(table, footer.schema.to_arrow_schema())


def check_elements(table: Table, schema: pa.Schema) -> None:
    """Readers that find columns by id read elements without ids as NULL. Older releases wrote such files."""
    arrays = {column_name(c.id): c.name for c in table.visible_columns if c.type.element is not None}
    for stored in schema:
        if stored.name in arrays and _FIELD_ID not in (stored.type.value_field.metadata or {}):
            raise Unmapped(
                f'a file of an older release has no ids for the elements of column "{arrays[stored.name]}"; '
                "ALTER COLUMN ... TYPE ... USING the column itself rewrites the files"
            )
