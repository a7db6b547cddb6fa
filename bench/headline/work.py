"""One session that works in a closed loop on a small table while another changes it: Seachange or PostgreSQL."""

import time
from itertools import count
from random import Random
from typing import Any

import psycopg

from bench import subject
from bench.peers.protocol import Answer, serve

# How many of ten transactions are of which kind.
MIXES = {
    "read_heavy": {"read": 9, "update": 1},
    "insert_heavy": {"insert": 9, "read": 1},
    "update_heavy": {"update": 9, "read": 1},
    "mixed": {"read": 4, "insert": 2, "update": 3, "delete": 1},
}
STATEMENTS = {
    "read": "select n, word from t where id = %s",
    "insert": "insert into t (id, n, word) values (%s, 0, 'new')",
    "update": "update t set n = n + 1 where id = %s",
    "delete": "delete from t where id = %s",
}
SEED = 20_261_117


class Work:
    def open(self, seachange: str = "", postgresql: str = "") -> Answer:
        """Both systems are used through a DB-API connection."""
        self._connection: Any = (
            subject.connect(seachange, None) if seachange else psycopg.connect(postgresql, autocommit=True)
        )
        self._cursor = self._connection.cursor()
        self._random = Random(SEED)
        self._ids = count(10**9)
        self._own: list[int] = []
        return {}

    def create(self, rows: int) -> Answer:
        self._cursor.execute("create table t (id bigint primary key, n bigint, word text)")
        self._cursor.execute(f"insert into t select i, 0, 'word ' || i from generate_series(0, {rows - 1}) as s(i)")
        return {}

    def execute(self, sql: str) -> Answer:
        self._cursor.execute(sql)
        return {}

    def work(self, mix: str, rows: int, seconds: float) -> Answer:
        """Runs transactions of one statement each for the given time."""
        kinds = [kind for kind, share in MIXES[mix].items() for _ in range(share)]
        done = failed = 0
        begun = time.perf_counter()
        while time.perf_counter() < begun + seconds:
            kind = self._random.choice(kinds)
            try:
                self._transact(kind, rows)
                done += 1
            except (subject.Error, psycopg.Error):
                failed += 1
        return {"done": done, "failed": failed, "elapsed": time.perf_counter() - begun}

    def _transact(self, kind: str, rows: int) -> None:
        match kind:
            case "insert":
                key = next(self._ids)
            case "delete" if self._own:
                key = self._own.pop()
            case _:
                key = self._random.randrange(rows)
                kind = "read" if kind == "delete" else kind
        self._cursor.execute(STATEMENTS[kind], (key,))
        if kind == "read":
            self._cursor.fetchall()
        if kind == "insert":
            self._own.append(key)


if __name__ == "__main__":
    serve(Work())
