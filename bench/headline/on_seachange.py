"""Seachange, embedded: a node with one session; traffic and changes are two such processes."""

from pathlib import Path

from bench import subject
from bench.data import COLUMNS
from bench.headline.changes import PARENT_ROWS, PLAIN, PROBE, PROBE_VALUES
from bench.headline.contestant import Contestant
from bench.peers.protocol import Answer, serve


class Seachange(Contestant):
    def open(self, folder: str) -> Answer:
        self._database = subject.connect(folder, None)
        self._cursor = self._database.cursor()
        return {}

    def load(self, source: str) -> Answer:
        for table in ("t", PROBE):
            self._cursor.execute(f"create table {table} ({COLUMNS}, primary key (id))")
        self._cursor.execute(f"insert into {PROBE} values {PROBE_VALUES}")
        self._cursor.execute("create table p (id integer primary key)")
        self._cursor.execute(f"insert into p select i from generate_series(0, {PARENT_ROWS - 1}) as s(i)")
        subject.load_parquet(self._database, "t", Path(source))
        subject.compact(self._database, "t")
        return {}

    def close(self) -> Answer:
        self._database.close()
        return {}

    def read(self, row_id: int) -> None:
        self._cursor.execute("select a, k from t where id = %s", (row_id,))
        assert self._cursor.fetchall()

    def insert(self, row_id: int, a: int, b: float, k: str) -> None:
        self._cursor.execute("insert into t (id, a, b, k) values (%s, %s, %s, %s)", (row_id, a, b, k))

    def update(self, row_id: int, a: int) -> None:
        self._cursor.execute("update t set a = %s where id = %s", (a, row_id))

    def delete(self, row_id: int) -> None:
        self._cursor.execute("delete from t where id = %s", (row_id,))

    def _make(self, change: str, table: str) -> None:
        for statement in PLAIN[change]:
            self._cursor.execute(statement.format(t=table))


if __name__ == "__main__":
    serve(Seachange())
