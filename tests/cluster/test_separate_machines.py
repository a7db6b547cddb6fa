"""Processes with separate local folders, which share only PostgreSQL and an object store: clients transfer money, a
type is changed on Spark, and the node that began it is killed."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from tests.support.s3 import S3Server, environment
from tests.support.workers import wait_until

ACCOUNTS = 20_000
TOTAL = ACCOUNTS * 100
SEACHANGE = str(Path(sys.executable).with_name("seachange"))
TRANSFER = "update account set balance = balance + %s where id = %s"
SETTINGS = {
    "seachange.local_rows": "0",
    "seachange.spark.master": "local[1]",
    "seachange.pipeline_unit_rows": "4000",
}
CHANGE = "alter table account alter column balance type numeric(12, 2) using balance::numeric(12, 2)"


@contextmanager
def serve(url: str, catalog: str, local: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A node with a folder of its own, and its address for clients."""
    command = [SEACHANGE, "serve", "--data", url, "--catalog", catalog, "--local", str(local), "--node", name]
    command += ["--trust", "--listen", "127.0.0.1:0", "--http", "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"is ready on 127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            yield process, f"postgresql://seachange@127.0.0.1:{found[1]}/seachange"
        finally:
            process.kill()


class Transfers:
    """Transfers between accounts, until its node ends or the test does."""

    def __init__(self, url: str, first: int) -> None:
        self.done = 0
        self.ended = threading.Event()
        self._url, self._first = url, first
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                while not self.ended.is_set():
                    self._transfer(connection)
        except psycopg.OperationalError:
            # The node was killed.
            return

    def _transfer(self, connection: psycopg.Connection) -> None:
        one = (self._first + self.done * 7) % ACCOUNTS + 1
        try:
            connection.execute(TRANSFER, (-1, one))
            connection.execute(TRANSFER, (1, one % ACCOUNTS + 1))
            connection.commit()
            self.done += 1
        except psycopg.errors.SerializationFailure:
            connection.rollback()

    def join(self) -> None:
        self.ended.set()
        self._thread.join()


def change_type(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute(CHANGE)


@pytest.mark.slow
def test_nodes_share_only_a_catalog_and_a_store(
    s3_server: S3Server, postgres_catalog_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in environment(s3_server.port).items():
        monkeypatch.setenv(name, value)
    url, catalog = f"{s3_server.create_place()}/bank", postgres_catalog_url
    with (
        serve(url, catalog, tmp_path / "one", "one") as (first, first_url),
        serve(url, catalog, tmp_path / "two", "two") as (_, second_url),
        psycopg.connect(second_url, autocommit=True) as watcher,
        psycopg.connect(first_url, autocommit=True) as changing,
    ):
        for name, value in SETTINGS.items():
            changing.execute(f"set {name} = '{value}'")
        watcher.execute("create table account (id bigint primary key, balance int not null)")
        watcher.execute(f"insert into account select x, 100 from generate_series(1, {ACCOUNTS}) s(x)")
        transfers = [Transfers(first_url, 0), Transfers(second_url, 5)]
        changer = threading.Thread(target=change_type, args=(changing,))
        try:
            wait_until(lambda: all(each.done for each in transfers), "transfers on both nodes")
            changer.start()

            def job() -> tuple[str, str]:
                found = watcher.execute("select status, stage from seachange.jobs order by id desc").fetchone()
                return found if found is not None else ("none", "")

            wait_until(lambda: job() == ("running", "backfill"), "the first node to begin the change")
            first.kill()
            before = transfers[1].done
            wait_until(lambda: job()[0] == "succeeded", "the second node to finish the change")
            wait_until(lambda: transfers[1].done > before, "transfers after the kill")
        finally:
            for each in transfers:
                each.join()
        changer.join()
        found = watcher.execute("select count(*), sum(balance), min(pg_typeof(balance)::text) from account").fetchone()
        assert found is not None
        assert (found[0], int(found[1]), found[2]) == (ACCOUNTS, TOTAL, "numeric")
    check = [SEACHANGE, "check", "--data", url, "--catalog", catalog, "--local", str(tmp_path / "third"), "--full"]
    assert subprocess.run(check, env=os.environ).returncode == 0
