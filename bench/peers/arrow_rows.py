"""A row as an Arrow table, for the peers that append those."""

import pyarrow as pa

from bench.rows import Row

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.float64()),
        ("t", pa.string()),
        ("k", pa.string()),
    ]
)


def make_table(row: Row) -> pa.Table:
    return pa.table([[value] for value in row], schema=SCHEMA)
