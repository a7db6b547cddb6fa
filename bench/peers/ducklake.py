"""DuckLake with its catalog in a DuckDB or a SQLite file: one INSERT per commit.

Default settings: single rows are inlined in the catalog, which syncs each
commit to disk (once with DuckDB, four times with SQLite). The extensions come
from packages and are loaded by path, so nothing is downloaded.
"""

from importlib.util import find_spec
from pathlib import Path

import duckdb

from bench.peers.protocol import Answer, serve, span, time_each
from bench.rows import Row, make_rows

CATALOGS = {
    "duckdb": "ducklake:{folder}/catalog.ducklake",
    "sqlite": "ducklake:sqlite:{folder}/catalog.sqlite",
}
EXTENSIONS = ("ducklake", "sqlite_scanner")
COLUMNS = "id bigint, a integer, b double, t varchar, k varchar"
INSERT = "insert into t values (?, ?, ?, ?, ?)"
CHANGES = {
    "ADD COLUMN": "alter table t add column c{} integer",
    "SET DEFAULT": "alter table t alter column a set default {}",
    "COMMENT": "comment on table t is '{}'",
}


def extension_path(name: str) -> Path:
    spec = find_spec(f"duckdb_extension_{name}")
    assert spec is not None
    assert spec.origin is not None
    (path,) = Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension")
    return path


def attach(folder: Path, catalog: str) -> duckdb.DuckDBPyConnection:
    """A connection to an empty lake in that folder."""
    connection = duckdb.connect()
    for name in EXTENSIONS:
        connection.execute(f"load '{extension_path(name)}'")
    url = CATALOGS[catalog].format(folder=folder)
    connection.execute(f"attach '{url}' as lake (data_path '{folder}/data')")
    connection.execute("use lake")
    return connection


class Peer:
    def open(self, folder: str, catalog: str) -> Answer:
        self.connection = attach(Path(folder), catalog)
        self.connection.execute(f"create table t ({COLUMNS})")
        return {}

    def commit(self, first_id: int, count: int) -> Answer:
        return {"seconds": time_each(self.insert, make_rows(first_id, count))}

    def execute(self, sql: str) -> Answer:
        """Runs any statement; its seconds."""
        return {"seconds": sum(time_each(self.connection.execute, [sql]))}

    def insert(self, row: Row) -> None:
        self.connection.execute(INSERT, row)

    def span_changes(self, count: int) -> Answer:
        """Transactions of one connection, with changes by another."""
        self.changer = self.connection.cursor()
        self.changer.execute("use lake")
        return span(CHANGES, count, self._span)

    def _span(self, change: str, number: int) -> bool:
        self.connection.execute("begin")
        self.connection.execute("insert into t (id, a) values (?, 1)", [number])
        self.changer.execute(change.format(number))
        try:
            self.connection.execute("commit")
        except duckdb.TransactionException:
            return False
        return True

    def count(self) -> Answer:
        (row,) = self.connection.execute("select count(*) from t").fetchall()
        return {"rows": row[0]}

    def close(self) -> Answer:
        self.connection.close()
        return {}


if __name__ == "__main__":
    serve(Peer())
