"""`seachange serve` as a process of its own, forked with its imports done."""

import fcntl
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.support.forks import Fork
from tests.support.nodes import Place
from tests.support.workers import process_state, wait_until


@dataclass(frozen=True, slots=True)
class ServerProcess:
    place: Place
    process: Fork
    port: int
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"postgresql://seachange@127.0.0.1:{self.port}/seachange"

    def connect(self, autocommit: bool = True) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=autocommit)

    def stop(self) -> None:
        """By SIGSTOP, at a moment when it does not hold the locks of the catalog in SQLite, which all writers need."""
        wait_until(self._try_stop, "the server to stop without a lock")

    def _try_stop(self) -> bool:
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: process_state(self.process.pid) == "T", "the server to stop")
        if all(map(_is_free, self.place.data.glob("*lock*"))):
            return True
        self.resume()
        return False

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def server_process(place: Place, *options: str, name: str = "served") -> Iterator[ServerProcess]:
    """Ready for clients, who need no password. Killed at the end if it still runs."""
    arguments = ["serve", *place.options, "--trust", "--listen", "127.0.0.1:0", "--http", "off"]
    arguments += ["--node", name, *options]
    with Fork("seachange.cli.main", *arguments) as process:
        line = process.stdout.readline().decode()
        found = re.search(r"is ready on 127\.0\.0\.1:(\d+)", line)
        assert found is not None, line + process.stderr.read().decode()
        server = ServerProcess(place, process, int(found.group(1)))
        # Pipes that are full would stop the process.
        for pipe in (process.stdout, process.stderr):
            threading.Thread(target=_listen, args=(pipe, server.said), daemon=True).start()
        yield server


def _is_free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _listen(pipe: Iterator[bytes], said: list[str]) -> None:
    said.extend(line.decode(errors="replace") for line in pipe)
