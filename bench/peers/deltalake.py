"""deltalake (delta-rs): one append per commit, through an open table, which is its faster way.

It syncs neither data nor log files to disk; Seachange is measured with durable
commits all the same.
"""

from pathlib import Path

from deltalake import (  # type: ignore[import-not-found,unused-ignore]
    DeltaTable,
    write_deltalake,
)

from bench.peers.arrow_rows import SCHEMA, make_table
from bench.peers.protocol import Answer, serve, time_each
from bench.rows import Row, make_rows


class Peer:
    def open(self, folder: str) -> Answer:
        self.table = DeltaTable.create(Path(folder) / "table", schema=SCHEMA)
        return {}

    def commit(self, first_id: int, count: int) -> Answer:
        return {"seconds": time_each(self.insert, make_rows(first_id, count))}

    def insert(self, row: Row) -> None:
        write_deltalake(self.table, make_table(row), mode="append")

    def count(self) -> Answer:
        return {"rows": self.table.to_pyarrow_table().num_rows}

    def close(self) -> Answer:
        del self.table
        return {}


if __name__ == "__main__":
    serve(Peer())
