"""The servers that clients are run against, each with an empty database of the same name and role."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.support.postgres import LocalPostgres

ROLE = DATABASE = "seachange"
PASSWORD = "secret"
CONTROL_VERSION = 18
STOP_SECONDS_MAX = 60
CHECK_SECONDS_MAX = 120
_PROBLEM_CHARACTERS = 300
_SEACHANGE = (sys.executable, "-m", "seachange.cli.main")


class Inconsistent(Exception):
    """`seachange check` has found problems in the database that a client leaves."""


@contextmanager
def serve_seachange() -> Iterator[str]:
    """The URL of a server with a new database, which is checked when the server has ended."""
    with tempfile.TemporaryDirectory(prefix="seachange-compat-") as folder:
        command = [*_SEACHANGE, "serve", "--data", folder, "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "SEACHANGE_PASSWORD": PASSWORD}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            try:
                line = process.stdout.readline()
                found = re.search(r"is ready on (\S+)", line)
                if found is None:
                    raise RuntimeError(f"the server does not start: {line}")
                yield f"postgresql://{ROLE}:{PASSWORD}@{found[1]}/{DATABASE}"
            finally:
                process.terminate()
                process.wait(STOP_SECONDS_MAX)
        check_database(folder)


def check_database(folder: str) -> None:
    command = [*_SEACHANGE, "check", "--data", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CHECK_SECONDS_MAX)
    if done.returncode != 0:
        raise Inconsistent(" ".join((done.stdout + done.stderr).split())[:_PROBLEM_CHARACTERS])


@contextmanager
def serve_postgresql() -> Iterator[str]:
    """The URL of PostgreSQL itself: a feature that fails there is an error in the check."""
    with LocalPostgres(fsync=False, version=CONTROL_VERSION) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create role {ROLE} superuser login password '{PASSWORD}'")
            connection.execute(f"create database {DATABASE} owner {ROLE}")
        yield f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:{server.port}/{DATABASE}"
