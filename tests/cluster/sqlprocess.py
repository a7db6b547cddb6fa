"""A process with one session, told over its standard input what to run: one JSON line for each statement, one for each
outcome."""

import json
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS, arm_from
from tests.support.forks import Fork
from tests.support.nodes import Place, ShiftedClock, open_ported_node
from tests.support.workers import process_state, wait_until

REPOSITORY = Path(__file__).parents[2]
# Takes jobs until there are none, as a program would that knows nothing of other nodes.
TAKE = "SELECT id FROM job ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
# What is about fault points, and not SQL.
ARM = "\\arm "
COUNT = "\\count"


class SqlProcess:
    """Used as a context: it is killed at the end if it did not end by itself."""

    def __init__(
        self, place: Place, expiry_ms: int = 10_000, fault: str | None = None, clock_offset_s: int = 0
    ) -> None:
        arguments = (str(place.data), place.catalog or "", str(expiry_ms), str(clock_offset_s))
        self._process = Fork("tests.cluster.sqlprocess", *arguments, fault=fault)

    def __enter__(self) -> "SqlProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        # What went wrong in it is shown with the test.
        sys.stderr.write(self._process.stderr.read().decode(errors="replace"))
        self._process.close()

    def send(self, text: str) -> None:
        self._process.stdin.write(json.dumps(text).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """The rows of the oldest statement not heard of yet, or its SQLSTATE."""
        return json.loads(self._process.stdout.readline())

    def run(self, text: str) -> Any:
        self.send(text)
        return self.hear()

    def arm(self, fault: str) -> None:
        """Arms a fault from now on; also counts how often each point is passed."""
        assert self.run(f"{ARM}{fault}") == []

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = self.run(COUNT)
        return found

    def wait(self) -> int:
        """How it ended: by itself, or by a fault."""
        return self._process.wait()

    @property
    def is_stopped(self) -> bool:
        """By SIGSTOP."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait_stopped(self) -> None:
        wait_until(lambda: process_state(self._process.pid) == "T", "the process to stop")

    def epoch(self, node: Node) -> int:
        """The newest that it has, as another node sees it."""
        name = f"{socket.gethostname()}-{self._process.pid}"
        return max(record.epoch for record in node.parts.catalog.nodes() if record.name == name)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def take_jobs(session: Session) -> list[int]:
    """A job is taken, done and deleted in one transaction."""
    done: list[int] = []
    while True:
        session.execute("BEGIN")
        found = session.execute(TAKE).rows
        if not found:
            session.execute("COMMIT")
            return done
        session.execute("DELETE FROM job WHERE id = $1", found[0])
        session.execute("COMMIT")
        done.append(found[0][0])


def answer(session: Session, text: str) -> Any:
    if text == TAKE:
        return take_jobs(session)
    if text == COUNT:
        return FAULTS.counts()
    if text.startswith(ARM):
        arm_from(text.removeprefix(ARM), FAULTS)
        return []
    return session.execute(text).rows


def serve(session: Session) -> None:
    for line in sys.stdin:
        text = json.loads(line)
        try:
            result: Any = answer(session, text)
        except errors.Error as problem:
            result = problem.sqlstate
        print(json.dumps(result), flush=True)


def main() -> None:
    data, catalog, expiry_ms, clock_offset_s = sys.argv[1:]
    place = Place(Path(data), catalog or None)
    if int(clock_offset_s):
        node = open_ported_node(place, expiry_ms=int(expiry_ms), clock=ShiftedClock(int(clock_offset_s)))
    else:
        node = open_node(place.location, place.catalog, expiry_ms=int(expiry_ms))
    session = Session(node)
    serve(session)
    session.close()
    node.close()


if __name__ == "__main__":
    main()
