"""Handles on workload processes: they are commanded, listened to, killed, stopped and continued.

A few of them are started ahead, so that a test does not wait for one.
"""

import json
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.forks import Fork
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S

SPARES = 2

Answer = dict[str, Any]


def wait_until(condition: Callable[[], Any], what: str, deadline_s: float = PATIENCE_S) -> Any:
    """Polls until `condition` gives something true, and gives that."""
    deadline = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {deadline_s} s for {what}"
        time.sleep(0.01)
    return found


class WorkerDied(Exception):
    """The process ended before it answered."""


class Worker:
    def __init__(self) -> None:
        self._process = Fork("tests.crash.workload")
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._listen, self._listen_to_errors)]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def complaint(self) -> str:
        return b"".join(self._errors).decode(errors="replace")

    # Talking.

    def send(self, do: str, **arguments: Any) -> None:
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as problem:
            raise WorkerDied(self.complaint) from problem

    def hear(self, deadline_s: float = PATIENCE_S) -> Answer:
        try:
            heard = self._answers.get(timeout=deadline_s)
        except queue.Empty:
            raise AssertionError(f"no answer within {deadline_s} s") from None
        if heard is None:
            raise WorkerDied(self.complaint)
        return heard

    def hear_until(self, *kinds: str) -> list[Answer]:
        """All answers up to the first that has one of these fields."""
        heard = [self.hear()]
        while not any(kind in heard[-1] for kind in kinds):
            heard.append(self.hear())
        return heard

    def ask(self, do: str, **arguments: Any) -> Answer:
        """A command and its last answer: what is said on the way (refusals, commit ids) is skipped."""
        self.send(do, **arguments)
        while True:
            heard = self.hear()
            if not heard.keys() & {"refused", "commit", "unknown", "skipped"}:
                return heard

    def open(self, place: Place, **options: Any) -> Answer:
        return self.ask("open", data=str(place.data), catalog=place.catalog, **options)

    def hear_until_silent(self) -> Iterator[Answer]:
        """What it says until it ends, or until there is nothing left to do for it."""
        self._process.stdin.close()
        while (heard := self._answers.get(timeout=PATIENCE_S)) is not None:
            yield heard

    # Life and death.

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        self.wait_stopped()

    def wait_stopped(self) -> None:
        wait_until(lambda: process_state(self.pid) == "T", "the process to stop")

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join()
        self._process.close()

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _listen_to_errors(self) -> None:
        for line in self._process.stderr:
            self._errors.append(line)


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Workers:
    """Gives out processes that are ready, and ends all of them."""

    def __init__(self) -> None:
        self._spares: deque[Worker] = deque()
        self._given: list[Worker] = []

    def take(self) -> Worker:
        while len(self._spares) < SPARES:
            self._spares.append(Worker())
        worker = self._spares.popleft()
        self._spares.append(Worker())
        self._given.append(worker)
        assert worker.hear() == {"ready": True}
        return worker

    def end_given(self) -> None:
        while self._given:
            self._given.pop().end()

    def end(self) -> None:
        self.end_given()
        while self._spares:
            self._spares.pop().end()
