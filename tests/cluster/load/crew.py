"""The processes of the load, as seen by who started them: killed, started again, stopped for a while, ended."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.load.log import Entry, read_log
from tests.support.nodes import Place
from tests.support.workers import REPOSITORY

END_SECONDS = 60
# So long is the log of a process that has committed something.
BEGUN_BYTES = 2_000


class Process:
    """One place in the crew; who fills it changes with every kill."""

    def __init__(self, crew: "Crew", name: str) -> None:
        self.name = name
        self._crew = crew
        self._process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        command = self.command()
        with open(self._crew.folder / f"{self.name}.err", "ab") as complaints:
            return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=complaints)

    def command(self) -> list[str]:
        place = self._crew.place
        catalog = [] if place.catalog is None else ["--catalog", place.catalog]
        return [sys.executable, "-m", "seachange.cli.main", "worker", "--data", str(place.data), *catalog]

    @property
    def has_begun(self) -> bool:
        """Whether there is anything of it to disturb."""
        return True

    def replace(self) -> None:
        """Dies without a word; another takes its place."""
        self._process.kill()
        self._process.wait()
        self._process = self.start()

    def sleep(self, seconds: float, alarm: threading.Event) -> None:
        self._process.send_signal(signal.SIGSTOP)
        alarm.wait(seconds)
        self._process.send_signal(signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self) -> int:
        return self._process.wait(END_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Member(Process):
    def __init__(self, crew: "Crew", name: str, clock_offset_s: int = 0) -> None:
        self._clock_offset_s = clock_offset_s
        super().__init__(crew, name)

    def command(self) -> list[str]:
        place = self._crew.place
        self._number = number = self._crew.next_number()
        arguments = [place.data, place.catalog or "", number, self._crew.seed, self._crew.log_of(number)]
        return [sys.executable, "-m", "tests.cluster.load.member", *map(str, arguments), str(self._clock_offset_s)]

    @property
    def has_begun(self) -> bool:
        log = self._crew.log_of(self._number)
        return log.exists() and log.stat().st_size > BEGUN_BYTES


class Crew:
    """Three nodes and a worker."""

    def __init__(self, place: Place, folder: Path, seed: int, clock_offsets_s: tuple[int, ...] = (0, 0, 0)) -> None:
        self.place = place
        self.folder = folder
        self.seed = seed
        self._number = 0
        self.members = [Member(self, f"member-{n}", offset) for n, offset in enumerate(clock_offsets_s)]
        self.worker = Process(self, "worker")

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

    def complaints(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.err")))

    def end(self) -> list[int]:
        for process in self.processes:
            process.terminate()
        return [process.wait() for process in self.processes]

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
