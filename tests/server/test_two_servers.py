"""Two servers on one PostgreSQL catalog: changes of the schema through one, rows through the other."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.patience import PATIENCE_S

PASSWORD = "secret"


@contextmanager
def server(data: Path, catalog: str, name: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(data), "--catalog", catalog]
    command += ["--node", name, "--listen", "127.0.0.1:0", "--http", "off"]
    environment = {**os.environ, "SEACHANGE_PASSWORD": PASSWORD}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            (port,) = re.findall(r"is ready on 127\.0\.0\.1:(\d+)", process.stdout.readline())
            yield process, f"postgresql://seachange:{PASSWORD}@127.0.0.1:{port}/seachange"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.fixture
def servers(tmp_path, postgres_catalog_url):
    with server(tmp_path, postgres_catalog_url, "west") as west, server(tmp_path, postgres_catalog_url, "east") as east:
        yield west, east


def test_changes_on_one_and_rows_through_the_other(servers):
    (first, west_url), (_, east_url) = servers
    with psycopg.connect(west_url, autocommit=True) as west, psycopg.connect(east_url, autocommit=True) as east:
        west.execute("create table t (id int primary key, n int)")
        # What one has committed the other sees at once.
        east.execute("insert into t select x, x from generate_series(1, 200) s(x)")
        assert west.execute("select count(*), sum(n) from t").fetchone() == (200, 20_100)
        nodes = west.execute("select name from seachange.nodes where live order by name").fetchall()
        assert nodes == [("east",), ("west",)]

        with psycopg.connect(east_url) as old:
            old.execute("insert into t values (1000, 1000)")
            west.execute("set seachange.drain_timeout = '100ms'")
            west.execute("alter table t add column tag text not null default 'new'")
            # Begun before the change, committed after it.
            old.commit()
        assert west.execute("select tag from t where id = 1000").fetchone() == ("new",)

        written = _write_while(east_url, lambda: west.execute("create unique index by_n on t (n)"))
        assert written > 0
        with pytest.raises(psycopg.errors.UniqueViolation):
            east.execute("insert into t values (5000, 1000, 'again')")
        assert east.execute("select count(*) from t").fetchone() == (201 + written,)

        # A row that one has locked is locked for the other.
        with psycopg.connect(west_url) as holder:
            holder.execute("select * from t where id = 1 for update")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                east.execute("select * from t where id = 1 for update nowait")
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE_S) == 0
    with psycopg.connect(east_url, autocommit=True) as east:
        assert east.execute("select name from seachange.nodes where live").fetchall() == [("east",)]
        assert east.execute("select n from t where id = 1").fetchone() == (1,)


def _write_while(url: str, change) -> int:
    """Inserts rows until the change is finished; returns their number."""
    over = threading.Event()
    written: list[int] = []

    def write() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set() or not written:
                key = 2_000 + len(written)
                connection.execute("insert into t (id, n) values (%s, %s)", [key, key])
                written.append(key)

    writer = threading.Thread(target=write)
    writer.start()
    change()
    over.set()
    writer.join()
    return len(written)


def test_the_other_goes_on_when_one_is_killed(servers):
    (victim, west_url), (_, east_url) = servers
    with psycopg.connect(east_url, autocommit=True) as east:
        east.execute("create table k (id int primary key)")
        west = psycopg.connect(west_url)
        west.execute("insert into k values (1)")
        victim.kill()
        victim.wait(PATIENCE_S)
        east.execute("insert into k values (2)")
        assert east.execute("select id from k").fetchall() == [(2,)]
        west.close()
