"""PostgreSQL, with three sets of statements; one connection in autocommit mode."""

import psycopg

from bench.headline.changes import BATCH, BATCHED_AFTER, BATCHED_BEFORE, CAREFUL, PLAIN, batches
from bench.headline.contestant import Contestant
from bench.peers.protocol import Answer, serve

WAYS = {"plain": PLAIN, "careful": CAREFUL}


class PostgreSQL(Contestant):
    def open(self, url: str, way: str, rows: int) -> Answer:
        self._connection = psycopg.connect(url, autocommit=True)
        self._way = way
        self._rows = rows
        return {}

    def close(self) -> Answer:
        self._connection.close()
        return {}

    def read(self, row_id: int) -> None:
        assert self._connection.execute("select a, k from t where id = %s", (row_id,)).fetchone()

    def insert(self, row_id: int, a: int, b: float, k: str) -> None:
        self._connection.execute("insert into t (id, a, b, k) values (%s, %s, %s, %s)", (row_id, a, b, k))

    def update(self, row_id: int, a: int) -> None:
        assert self._connection.execute("update t set a = %s where id = %s", (a, row_id)).rowcount == 1

    def delete(self, row_id: int) -> None:
        assert self._connection.execute("delete from t where id = %s", (row_id,)).rowcount == 1

    def _make(self, change: str, table: str) -> None:
        if self._way == "batched":
            self._make_batched(table)
            return
        self._execute_all(WAYS[self._way][change], table)

    def _make_batched(self, table: str) -> None:
        self._execute_all(BATCHED_BEFORE, table)
        for first, last in batches(self._rows):
            self._connection.execute(BATCH.format(t=table, first=first, last=last).encode())
        self._execute_all(BATCHED_AFTER, table)

    def _execute_all(self, statements: tuple[str, ...] | str, table: str) -> None:
        for statement in statements:
            self._connection.execute(statement.format(t=table).encode())


if __name__ == "__main__":
    serve(PostgreSQL())
