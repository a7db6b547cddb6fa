"""Two servers that speak the same protocol: Seachange's and PostgreSQL's, each with an empty database."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Unavailable
from tests.support.postgres import LocalPostgres, PostgresFailed

CONNECTIONS_MAX = 700
STOP_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    # The process that serves all connections, where there is one.
    pid: int | None = None

    @property
    def memory_bytes(self) -> int:
        assert self.pid is not None
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serve_seachange(folder: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(folder), "--trust"]
    command += ["--listen", "127.0.0.1:0", "--connections", str(CONNECTIONS_MAX)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"is ready on (\S+)", process.stdout.readline())
            assert found is not None, "the server does not start"
            yield Served(f"postgresql://seachange@{found[1]}/seachange", process.pid)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS_MAX)


@contextmanager
def serve_postgresql() -> Iterator[Served]:
    try:
        with LocalPostgres(settings={"max_connections": str(CONNECTIONS_MAX)}) as server:
            yield Served(server.create_database())
    except PostgresFailed as error:
        raise Unavailable(str(error)) from error
