"""DuckLake with its catalog in a DuckDB file, which one process has open: traffic and changes are two connections."""

from contextlib import suppress
from pathlib import Path

import duckdb

from bench.headline.changes import DUCKLAKE, PROBE, PROBE_VALUES
from bench.headline.contestant import Contestant
from bench.peers.ducklake import COLUMNS, attach
from bench.peers.protocol import Answer, serve


class DuckLake(Contestant):
    def open(self, folder: str, source: str) -> Answer:
        self._changer = attach(Path(folder), "duckdb")
        self._connection: duckdb.DuckDBPyConnection = self._changer.cursor()
        self._connection.execute("use lake")
        self._changer.execute(f"create table t ({COLUMNS})")
        self._changer.execute(f"insert into t select * from read_parquet('{source}') order by id")
        self._changer.execute(f"create table {PROBE} ({COLUMNS})")
        self._changer.execute(f"insert into {PROBE} values {PROBE_VALUES}")
        return {}

    def close(self) -> Answer:
        self._connection.close()
        self._changer.close()
        return {}

    def read(self, row_id: int) -> None:
        assert self._connection.execute("select a, k from t where id = ?", (row_id,)).fetchall()

    def insert(self, row_id: int, a: int, b: float, k: str) -> None:
        self._connection.execute("insert into t (id, a, b, k) values (?, ?, ?, ?)", (row_id, a, b, k))

    def update(self, row_id: int, a: int) -> None:
        self._connection.execute("update t set a = ? where id = ?", (a, row_id))

    def delete(self, row_id: int) -> None:
        self._connection.execute("delete from t where id = ?", (row_id,))

    def _make(self, change: str, table: str) -> None:
        try:
            for statement in DUCKLAKE[change]:
                self._changer.execute(statement.format(t=table))
        except duckdb.Error:
            # A failed statement within a transaction leaves it open, one outside leaves none.
            with suppress(duckdb.TransactionException):
                self._changer.execute("rollback")
            raise


if __name__ == "__main__":
    serve(DuckLake())
