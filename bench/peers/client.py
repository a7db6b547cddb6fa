"""The measuring side of the conversation with a process that speaks `bench.peers.protocol`."""

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.peers.environment import ROOT, interpreter_of

STOP_SECONDS_MAX = 30
# Far more than anything takes, so that a hanging peer is noticed.
ANSWER_SECONDS_MAX = 900.0


class ProcessFailed(Exception):
    """The process answered with an error, or ended."""


class Client:
    """One process; `send` and `receive` apart let several of them work at the same time."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name = name
        self._process = process

    def request(self, op: str, seconds_max: float = ANSWER_SECONDS_MAX, /, **arguments: object) -> dict[str, Any]:
        self.send(op, **arguments)
        return self.receive(seconds_max)

    def send(self, op: str, **arguments: object) -> None:
        requests = self._pipe(self._process.stdin)
        requests.write(json.dumps({"op": op, **arguments}) + "\n")
        requests.flush()

    def receive(self, seconds_max: float = ANSWER_SECONDS_MAX) -> dict[str, Any]:
        """The answer to what was sent; a process that owes it for too long is killed, and has failed."""
        answers = self._pipe(self._process.stdout)
        # There is one line for each request, so nothing of this answer can have been read before.
        if not select.select([answers], [], [], seconds_max)[0]:
            self.kill()
            raise ProcessFailed(f"{self.name} gave no answer within {seconds_max:g} s")
        line = answers.readline()
        if not line:
            raise ProcessFailed(f"{self.name} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessFailed(f"{self.name}: {answer['error']}")
        return answer

    def kill(self) -> None:
        """Ends the process without its having a say in it."""
        self._process.kill()
        self._process.wait()

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


@contextmanager
def run_module(name: str, module: str, interpreter: Path) -> Iterator[Client]:
    """A process that serves the module's operations, ended when the block is left."""
    process = subprocess.Popen(
        [interpreter, "-m", module],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Client(name, process)
    finally:
        stop(process)


def stop(process: "subprocess.Popen[str]") -> None:
    """The end of its input asks the process to leave; one that does not is killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        process.wait(timeout=STOP_SECONDS_MAX)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    process.stdout.close()


@contextmanager
def run_peer(peer: str) -> Iterator[Client]:
    with run_module(peer, f"bench.peers.{peer}", interpreter_of(peer)) as client:
        yield client


@contextmanager
def run_subject() -> Iterator[Client]:
    """Seachange in a process of its own, so that its threads never run during a peer's turn."""
    with run_module("seachange", "bench.subject_process", Path(sys.executable)) as client:
        yield client


@contextmanager
def run_load() -> Iterator[Client]:
    """A node of Seachange under load, in a process of its own."""
    with run_module("load", "bench.load_process", Path(sys.executable)) as client:
        yield client


@contextmanager
def run_hot_rows() -> Iterator[Client]:
    """A node of Seachange whose clients write the same few rows as those of others, in a process of its own."""
    with run_module("hot_rows", "bench.hot_process", Path(sys.executable)) as client:
        yield client


@contextmanager
def run_spark_sql() -> Iterator[Client]:
    """Spark without Seachange, of the version that Seachange uses."""
    with run_module("spark_sql", "bench.peers.spark_sql", Path(sys.executable)) as client:
        yield client
