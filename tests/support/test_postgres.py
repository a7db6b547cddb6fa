"""The PostgreSQL of the tests keeps its promises: data, port, and no orphans."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import LocalPostgres

REPOSITORY = Path(__file__).parents[2]


def read_notes(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT note FROM notes ORDER BY note")]


def write_note(url: str, note: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (note text)")
        connection.execute("INSERT INTO notes VALUES (%s)", (note,))


def wait_until_gone(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return
        time.sleep(0.05)
    pytest.fail("the server is still there")


def test_each_database_is_fresh(postgres_server: LocalPostgres, postgres_catalog_url: str):
    other = postgres_server.create_database()
    write_note(postgres_catalog_url, "a")
    with pytest.raises(psycopg.errors.UndefinedTable):
        read_notes(other)
    postgres_server.drop_database(other)


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_comes_back_with_its_data(postgres_server: LocalPostgres, postgres_catalog_url: str, way: str):
    write_note(postgres_catalog_url, "kept")
    before = postgres_server.pid
    with psycopg.connect(postgres_catalog_url) as held:
        held.execute("SELECT 1")
        if way == "restart":
            postgres_server.restart()
        else:
            postgres_server.kill()
            postgres_server.start()
        with pytest.raises(psycopg.OperationalError):
            held.execute("SELECT 1")
        held.close()
    assert postgres_server.pid != before
    assert read_notes(postgres_catalog_url) == ["kept"]


def test_breaks_connections(postgres_server: LocalPostgres, postgres_catalog_url: str):
    held = psycopg.connect(postgres_catalog_url)
    assert postgres_server.break_connections(postgres_catalog_url) == 1
    with pytest.raises(psycopg.OperationalError):
        held.execute("SELECT 1")
    held.close()


@pytest.mark.parametrize(("version", "options", "fsync"), [(16, {}, "on"), (18, {"fsync": False}, "off")])
def test_takes_version_and_settings_and_is_durable_by_default(version: int, options: dict[str, bool], fsync: str):
    with (
        LocalPostgres(**options, version=version, settings={"work_mem": "1MB"}) as server,
        psycopg.connect(server.url) as connection,
    ):
        assert connection.info.server_version // 10000 == version
        assert connection.execute("SHOW fsync").fetchone() == (fsync,)
        assert connection.execute("SHOW work_mem").fetchone() == ("1MB",)


def test_ends_with_the_process_that_started_it():
    script = (
        "import time\n"
        "from tests.support.postgres import LocalPostgres\n"
        "server = LocalPostgres(fsync=False)\n"
        "server.start()\n"
        "print(server.url, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        psycopg.connect(url).close()
        os.kill(owner.pid, signal.SIGKILL)
    wait_until_gone(url)
