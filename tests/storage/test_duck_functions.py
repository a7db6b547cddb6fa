"""Functions are registered on a connection when it calls them, even if other threads register them concurrently."""

import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb

from seachange.storage.duck_functions import know_functions

SESSIONS = 6
DATABASES = 30
CALL = "select seachange_text(1.5)"


def test_sessions_that_need_a_function_at_the_same_time():
    with ThreadPoolExecutor(SESSIONS) as pool:
        for _ in range(DATABASES):
            with duckdb.connect() as database:
                together = threading.Barrier(SESSIONS)

                def call(session: duckdb.DuckDBPyConnection, together: threading.Barrier = together) -> object:
                    together.wait()
                    know_functions(session, CALL)
                    return session.execute(CALL).fetchall()

                sessions = [database.cursor() for _ in range(SESSIONS)]
                assert list(pool.map(call, sessions)) == [[("1.5",)]] * SESSIONS
