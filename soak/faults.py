"""Faults: SIGKILL and SIGSTOP of processes, restarts of PostgreSQL, a disk that is really full, and an object store
that does not answer for a while."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from soak.history import now_us
from soak.processes import Place, Processes

KILL, STOP, POSTGRES, DISK, STORE = "kill", "stop", "postgres", "disk", "store"
FAULTS = (KILL, STOP, POSTGRES, DISK, STORE)
SECOND = 1_000_000
# A process that has just started is not disturbed for this long.
SPARED_US = 2 * SECOND
PAUSE_SECONDS = (1.0, 8.0)
# Below and above the heartbeat timeout of a node.
STOP_SECONDS = (0.4, 1.5, 5.0)
FULL_SECONDS = (0.5, 2.5)
DISK_BYTES = 1 << 30


class Server(Protocol):
    """The PostgreSQL server of the catalog."""

    def restart(self) -> None: ...

    def kill(self) -> None: ...

    def start(self) -> None: ...


class ObjectServer(Protocol):
    """The server of the object store."""

    @property
    def pid(self) -> int: ...


class SmallDisk:
    """A file system of limited size in memory, which a filler makes really full."""

    def __init__(self, folder: Path, size_bytes: int = DISK_BYTES) -> None:
        self.folder = folder
        self._size_bytes = size_bytes
        self._filler = folder / "filler"

    def mount(self) -> str | None:
        """Why it is not available; None if it is."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={self._size_bytes}", "tmpfs", str(self.folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no mount command"
        return f"a small file system cannot be mounted: {done.stderr.strip()}" if done.returncode else None

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False)

    def fill(self) -> None:
        with self._filler.open("wb", buffering=0) as file:
            left = shutil.disk_usage(self.folder).free
            try:
                os.posix_fallocate(file.fileno(), 0, max(left, 1))
                while True:
                    file.seek(0, os.SEEK_END)
                    file.write(b"x" * 4096)
            except OSError:
                return

    def empty(self) -> None:
        self._filler.unlink(missing_ok=True)


@dataclass(slots=True)
class Disturber:
    """Chooses faults and undoes them; at most one is active, so that a run makes progress."""

    processes: Processes
    chance: random.Random
    kinds: tuple[str, ...]
    bury: Callable[[tuple[str, ...]], None]
    disk: SmallDisk | None = None
    server: Server | None = None
    store: ObjectServer | None = None
    counts: Counter[str] = field(default_factory=Counter)
    # When a fault was last active that can make a starting process fail.
    broken_us: int = 0
    _due_us: int = 0
    _full_until_us: int = 0
    _silent_until_us: int = 0

    def poll(self) -> None:
        """Called a few times a second."""
        now = now_us()
        self._undo(now)
        if not self._due_us:
            self._plan(now)
        if now >= self._due_us and not self._is_disturbed:
            self._do(self.chance.choice(self.kinds))
            self._plan(now_us())

    def end(self) -> None:
        self._undo(1 << 62)

    @property
    def _is_disturbed(self) -> bool:
        return bool(self._full_until_us or self._silent_until_us) or any(
            place.stopped_until_us for place in self.processes.all
        )

    def _plan(self, now: int) -> None:
        self._due_us = now + int(self.chance.uniform(*PAUSE_SECONDS) * SECOND)

    def _undo(self, now: int) -> None:
        for place in self.processes.all:
            if place.stopped_until_us and now >= place.stopped_until_us:
                place.resume()
        if self._full_until_us and now >= self._full_until_us and self.disk is not None:
            self.disk.empty()
            self._full_until_us = 0
            self.broken_us = now_us()
        if self._silent_until_us and now >= self._silent_until_us and self.store is not None:
            os.kill(self.store.pid, signal.SIGCONT)
            self._silent_until_us = 0
            self.broken_us = now_us()

    def _do(self, kind: str) -> None:
        now = now_us()
        ready = [place for place in self.processes.all if place.ready_us and now - place.ready_us > SPARED_US]
        match kind:
            case "kill" if ready:
                self._kill(self.chance.choice(ready))
            case "stop" if ready:
                place = self.chance.choice(ready)
                place.stopped_until_us = now + int(self.chance.choice(STOP_SECONDS) * SECOND)
                place.signal(signal.SIGSTOP)
            case "postgres" if self.server is not None:
                self._restart(self.server)
            case "disk" if self.disk is not None:
                self._full_until_us = now + int(self.chance.choice(FULL_SECONDS) * SECOND)
                self.disk.fill()
            case "store" if self.store is not None:
                self._silent_until_us = now + int(self.chance.choice(STOP_SECONDS) * SECOND)
                os.kill(self.store.pid, signal.SIGSTOP)
            case _:
                return
        self.counts[kind] += 1

    def _kill(self, place: Place) -> None:
        place.kill()
        if place.clients:
            self.bury(place.clients[-1])
        self.processes.start(place)

    def _restart(self, server: Server) -> None:
        if self.chance.random() < 0.5:
            server.restart()
        else:
            server.kill()
            server.start()
        self.broken_us = now_us()
