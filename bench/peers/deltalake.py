"""deltalake (delta-rs): one append per commit, through an open table, which is its faster way.

It syncs neither data nor log files to disk; Seachange is measured with durable
commits all the same.
"""

from pathlib import Path

import pyarrow as pa
from deltalake import (  # type: ignore[import-not-found,unused-ignore]
    DeltaTable,
    Field,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError  # type: ignore[import-not-found,unused-ignore]
from deltalake.schema import PrimitiveType  # type: ignore[import-not-found,unused-ignore]

from bench.peers.arrow_rows import SCHEMA, make_table
from bench.peers.protocol import Answer, serve, span, time_each
from bench.rows import Row, make_row, make_rows

CHANGES = {
    "ADD COLUMN": "add_columns",
    "ADD CHECK": "add_constraint",
    "COMMENT": "set_table_description",
}


class Peer:
    def open(self, folder: str) -> Answer:
        self.table = DeltaTable.create(Path(folder) / "table", schema=SCHEMA)
        return {}

    def commit(self, first_id: int, count: int) -> Answer:
        return {"seconds": time_each(self.insert, make_rows(first_id, count))}

    def insert(self, row: Row) -> None:
        write_deltalake(self.table, make_table(row), mode="append")

    def span_changes(self, count: int) -> Answer:
        return span(CHANGES, count, self._span)

    def _span(self, change: str, number: int) -> bool:
        """A write by a table that was opened before the change and is committed after it."""
        path = self.table.table_uri
        writer, changer = DeltaTable(path), DeltaTable(path)
        row = make_table(make_row(number)).cast(SCHEMA)
        missing = len(writer.schema().fields) - row.num_columns
        for _ in range(missing):
            name = writer.schema().fields[row.num_columns].name
            row = row.append_column(name, pa.nulls(1, pa.int32()))
        match change:
            case "add_columns":
                changer.alter.add_columns([Field(f"c{number}", PrimitiveType("integer"))])
            case "add_constraint":
                changer.alter.add_constraint({f"check{number}": "id >= 0"})
            case _:
                changer.alter.set_table_description(f"changed {number} times")
        try:
            write_deltalake(writer, row, mode="append")
        except CommitFailedError:
            return False
        return True

    def count(self) -> Answer:
        return {"rows": self.table.to_pyarrow_table().num_rows}

    def close(self) -> Answer:
        del self.table
        return {}


if __name__ == "__main__":
    serve(Peer())
