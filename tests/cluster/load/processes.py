"""The processes of the load, as seen by who started them: killed, started again, stopped for a while, ended."""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cluster.load.log import Entry, read_log
from tests.support.forks import Fork
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S

# So long is the log of a process that has committed something.
BEGUN_BYTES = 2_000


# An entry of the log, which a process writes there too.
_ENTRY = re.compile(r"\d{4}-\d\d-\d\dT\S+Z (INFO|WARNING|ERROR) ")


def _is_expected(line: str) -> bool:
    """Changes begin, end and fail; but nothing is to fail internally."""
    return _ENTRY.match(line) is not None and "XX000" not in line


class Process:
    """One place in the crew; who fills it changes with every kill."""

    def __init__(self, executor: "Crew") -> None:
        self._executor = executor
        self._process = self.start()

    def start(self) -> Fork:
        return Fork("seachange.cli.main", "worker", *self._executor.place.options)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything of it to disturb."""
        return True

    def replace(self) -> None:
        """Dies without a word; another takes its place."""
        self.kill()
        self._process = self.start()

    def sleep(self, seconds: float, alarm: threading.Event) -> None:
        self._process.send_signal(signal.SIGSTOP)
        alarm.wait(seconds)
        self._process.send_signal(signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        return self._process.wait()

    def dump(self) -> None:
        """Says where it is, among its complaints, and ends."""
        self._process.send_signal(signal.SIGABRT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        shown = self._process.stderr.read().decode(errors="replace").splitlines(keepends=True)
        self._executor.complaints += "".join(line for line in shown if not _is_expected(line))
        self._process.close()


class Member(Process):
    def __init__(self, executor: "Crew", clock_offset_s: int = 0) -> None:
        self._clock_offset_s = clock_offset_s
        super().__init__(executor)

    def start(self) -> Fork:
        place, executor = self._executor.place, self._executor
        self._number = number = executor.next_number()
        arguments = [
            place.data,
            place.catalog or "",
            number,
            executor.seed,
            executor.log_of(number),
            self._clock_offset_s,
        ]
        return Fork("tests.cluster.load.member", *map(str, arguments))

    @property
    def has_begun(self) -> bool:
        log = self._executor.log_of(self._number)
        return log.exists() and log.stat().st_size > BEGUN_BYTES


class Crew:
    """Three nodes and a worker."""

    def __init__(self, place: Place, folder: Path, seed: int, clock_offsets_s: tuple[int, ...] = (0, 0, 0)) -> None:
        self.place = place
        self.folder = folder
        self.seed = seed
        self._number = 0
        # What the processes wrote to their standard error.
        self.complaints = ""
        self.members = [Member(self, offset) for offset in clock_offsets_s]
        self.worker = Process(self)

    @property
    def processes(self) -> list[Process]:
        return [*self.members, self.worker]

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def log_of(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def entries(self) -> Iterator[Entry]:
        for number in range(1, self._number + 1):
            if self.log_of(number).exists():
                yield from read_log(self.log_of(number))

    def end(self, meanwhile: Callable[[], object]) -> list[int]:
        """Stops all processes and waits for them; a statement may wait for a job that another client has paused."""
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + PATIENCE_S
        while not all(process.has_ended for process in self.processes):
            meanwhile()
            if time.monotonic() > deadline:
                for process in self.processes:
                    process.dump()
            time.sleep(0.1)
        return [process.wait() for process in self.processes]

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
