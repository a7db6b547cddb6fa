"""pyiceberg with its SQL catalog in SQLite: one append per commit.

The catalog syncs each commit to disk; data and metadata files are not synced.
"""

from pyiceberg.catalog.sql import SqlCatalog  # type: ignore[import-not-found,unused-ignore]

from bench.peers.arrow_rows import SCHEMA, make_table
from bench.peers.protocol import Answer, serve, time_each
from bench.rows import Row, make_rows


class Peer:
    def open(self, folder: str) -> Answer:
        self.catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        self.catalog.create_namespace("bench")
        self.table = self.catalog.create_table("bench.t", schema=SCHEMA)
        return {}

    def commit(self, first_id: int, count: int) -> Answer:
        return {"seconds": time_each(self.insert, make_rows(first_id, count))}

    def insert(self, row: Row) -> None:
        self.table.append(make_table(row))

    def count(self) -> Answer:
        return {"rows": self.table.scan().to_arrow().num_rows}

    def close(self) -> Answer:
        self.catalog.close()
        return {}


if __name__ == "__main__":
    serve(Peer())
