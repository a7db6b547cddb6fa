"""The processes of a run: nodes that serve, clients over the wire, and clients with an embedded node.

They are forked from a server that has done their imports, which take seconds on a busy machine.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from soak.client import Orders
from soak.history import SUFFIX, now_us

_CONTEXT = multiprocessing.get_context("forkserver")
# The last three are imported when they are needed.
_CONTEXT.set_forkserver_preload(
    ["soak.node", "soak.client", "seachange.cli.serve", "seachange.catalog.postgres", "psycopg_binary"]
)
# Clients of one start of a process are numbered within it.
CLIENTS_MAX = 100


def _run(module: str, arguments: tuple[str, ...], log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    faulthandler.enable(file=2)
    sys.exit(importlib.import_module(module).main(list(arguments)))


@dataclass(slots=True)
class Place:
    """One of the processes; which one is in it changes with every kill."""

    name: str
    logs: Path
    # Nodes end by themselves at SIGTERM, clients after their transaction.
    is_node: bool
    starts: int = 0
    stopped_until_us: int = 0
    started_us: int = 0
    ready_us: int = 0
    process: ForkServerProcess | None = None
    # The names of all clients that this place has had, by start.
    clients: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.log"

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    def launch(self, module: str, arguments: Sequence[str]) -> None:
        self.starts += 1
        self.started_us, self.ready_us = now_us(), 0
        self.process = _CONTEXT.Process(target=_run, args=(module, tuple(arguments), str(self.log)), daemon=True)
        self.process.start()

    def poll(self) -> int | None:
        return None if self.process is None else self.process.exitcode

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
            self.stopped_until_us = 0

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        self.stopped_until_us = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What all processes of a run share. With a store, `data` has the local folder of each process."""

    folder: Path
    data: Path
    settings: str
    store: str | None
    catalog: str | None
    seed: int
    start_us: int
    round_us: int
    ports: tuple[int, ...]
    writers: int
    plant: str | None

    @property
    def history(self) -> Path:
        return self.folder / "history"

    @property
    def url(self) -> str:
        return self.store or str(self.data)

    def local(self, process: str) -> str | None:
        """The local folder of a process."""
        local = self.data if self.store is None else self.data / process
        local.mkdir(mode=0o700, exist_ok=True)
        if not (local / "seachange.toml").exists():
            (local / "seachange.toml").write_text(self.settings)
        return None if self.store is None else str(local)

    def options(self, process: str) -> list[str]:
        """Where the database is, for a command."""
        local = self.local(process)
        found = ["--data", self.url] + ([] if local is None else ["--local", local])
        return found + ([] if self.catalog is None else ["--catalog", self.catalog])


class Processes:
    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._numbers = 0
        folder = setting.folder
        self.nodes = [Place(f"node{n}", folder, True) for n in range(len(setting.ports))]
        self.executors = [Place("wire", folder, False), Place("embedded", folder, False)]

    @property
    def all(self) -> list[Place]:
        return [*self.nodes, *self.executors]

    def start(self, place: Place) -> None:
        if place.is_node:
            place.launch("soak.node", self._node_arguments(self.nodes.index(place)))
        else:
            orders = self._orders(place)
            place.clients.append(orders.clients)
            place.launch("soak.client", [json.dumps(asdict(orders))])

    def note_ready(self) -> None:
        """A node is ready when it says so, a process of clients when one of them has begun."""
        for place in self.all:
            if not place.ready_us and place.process is not None and self._is_ready(place):
                place.ready_us = now_us()

    def await_beginnings(self, seconds: float) -> None:
        """Of processes that were started a moment ago: until then SIGTERM would kill them."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.note_ready()
            if all(place.ready_us or place.poll() is not None for place in self.all if place.process is not None):
                return
            time.sleep(0.05)

    def _is_ready(self, place: Place) -> bool:
        if not place.is_node:
            paths = (self._setting.history / f"{client}{SUFFIX}" for client in place.clients[-1])
            return any(path.exists() and path.stat().st_size for path in paths)
        return place.log.exists() and f"-{place.pid} is ready on" in place.log.read_text(errors="replace")

    def _node_arguments(self, number: int) -> list[str]:
        setting = self._setting
        plant = [] if setting.plant is None else ["--plant", setting.plant]
        listen = ["--listen", f"127.0.0.1:{setting.ports[number]}", "--trust", "--http", "off"]
        return [*plant, *setting.options(self.nodes[number].name), *listen]

    def _orders(self, place: Place) -> Orders:
        setting = self._setting
        first = self._numbers * CLIENTS_MAX
        self._numbers += 1
        is_wire = place is self.executors[0]
        return Orders(
            history=str(setting.history),
            name=f"{place.name}{place.starts}",
            first=first,
            writers=setting.writers if is_wire else max(1, setting.writers // 2),
            changers=1,
            seed=setting.seed,
            start_us=setting.start_us,
            round_us=setting.round_us,
            data=setting.url,
            local=setting.local(place.name),
            catalog=setting.catalog,
            ports=setting.ports if is_wire else (),
            plant=setting.plant,
        )

    def kill(self) -> None:
        for place in self.all:
            place.kill()


@dataclass(frozen=True, slots=True)
class Footprint:
    """The resource usage of a process: memory, threads and open files."""

    rss_bytes: int
    threads: int
    files: int


def measure(pid: int) -> Footprint | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        files = len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "VmRSS" not in fields:
        return None
    return Footprint(int(fields["VmRSS"].split()[0]) << 10, int(fields["Threads"]), files)
