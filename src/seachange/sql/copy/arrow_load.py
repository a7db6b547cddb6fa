"""Loading of Arrow data: columns by name, converted to the table's types, with defaults for missing ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.target import check_assigned
from seachange.sql.duck.column_values import convert_array
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.port.port import TransactionPort
from seachange.storage.arrow import arrow_type

# An Arrow table, record batch or record batch reader (pyarrow has no types for mypy).
ArrowSource = Any


def load_arrow(port: TransactionPort, table: Table, source: ArrowSource) -> int:
    port.rights.check_access(table, "INSERT")
    port.locks.begin_write(table, reads=False)
    reader = _reader(source)
    known = table.column_by_name
    for name in reader.schema.names:
        if name not in known:
            raise errors.UndefinedColumn(name=name, relation=table.name)
        # As with COPY, values of an identity column may be given.
        check_assigned(known[name], None, "insert into", overriding="system")
    schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in table.visible_columns])
    return port.writes.insert_arrow(
        table, pa.RecordBatchReader.from_batches(schema, _convert(port, reader, table, schema))
    )


def _reader(source: ArrowSource) -> pa.RecordBatchReader:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return source.to_reader()
    if isinstance(source, pa.RecordBatchReader):
        return source
    raise errors.DatatypeMismatch(detail="give an Arrow table, record batch or record batch reader")


def _convert(
    port: TransactionPort, reader: pa.RecordBatchReader, table: Table, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    present = set(reader.schema.names)
    for batch in reader:
        arrays = []
        for column, field in zip(table.visible_columns, schema, strict=True):
            if column.name in present:
                arrays.append(convert_array(batch.column(column.name), column.name, column.type))
            elif is_drawn(column):
                arrays.append(pa.array(port.sequences.defaults(column, batch.num_rows), field.type))
            else:
                # Generated columns are computed when rows are stored.
                value = None if column.generated is not None else constant_value(column.type, column.default)
                arrays.append(pa.array([value] * batch.num_rows, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
