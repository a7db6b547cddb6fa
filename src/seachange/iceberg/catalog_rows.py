"""Rows that are still in the catalog, as one data file in the shape of the table."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from seachange.model.schema.descriptor import Table
from seachange.storage.arrow import arrow_type, column_name, schema_of
from seachange.storage.image import SnapshotParts
from seachange.storage.projection import Frozen, StoredColumns, sources
from seachange.storage.small_arrays import array_of


def shape_rows(table: Table, parts: SnapshotParts) -> pa.Table:
    """The visible columns of the rows, in their current types."""
    schema = schema_of((column.id, column.type) for column in table.visible_columns)
    shaped = (
        _shape(table, table.stored_columns(table.primary, table.layout_by_id[layout_id]), rows)
        for layout_id, rows in parts.inline
    )
    return pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in shaped)]).combine_chunks()


def _shape(table: Table, stored: StoredColumns, rows: pa.Table) -> pa.Table:
    arrays, names = [], []
    for column, source in zip(table.visible_columns, sources(stored, table.visible_columns), strict=True):
        wanted = arrow_type(column.type)
        if isinstance(source, Frozen):
            arrays.append(array_of([source.value] * rows.num_rows, wanted))
        else:
            arrays.append(rows.column(column_name(column.id)).cast(wanted))
        names.append(column_name(column.id))
    return pa.Table.from_arrays(arrays, names=names)


def encode_rows(rows: pa.Table) -> bytes:
    """The same bytes for the same rows in the same columns. Without statistics, which engines interpret differently for
    NaN, and which so small a file does not need."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", store_decimal_as_integer=True, write_statistics=False)
    return sink.getvalue()
