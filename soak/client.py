"""A process of clients: threads that write, and one that changes schemas, until SIGTERM.

Started with one JSON argument, see `Orders`.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

from soak.connections import EmbeddedOpener, Opener, WireOpener
from soak.ddl import Changer
from soak.history import Recorder
from soak.plants import PLANTS
from soak.workload import Client, Pace


@dataclass(frozen=True, slots=True)
class Orders:
    """Clients are numbered from `first` on; without ports they use an embedded node."""

    history: str
    name: str
    first: int
    writers: int
    changers: int
    seed: int
    start_us: int
    round_us: int
    data: str
    local: str | None
    catalog: str | None
    ports: tuple[int, ...] = ()
    plant: str | None = None

    @property
    def clients(self) -> tuple[str, ...]:
        kinds = ["writer"] * self.writers + ["changer"] * self.changers
        return tuple(f"{self.name}-{kind}-{self.first + n}" for n, kind in enumerate(kinds))


def main(arguments: list[str]) -> None:
    orders = Orders(**json.loads(arguments[0]))
    if orders.plant is not None and not orders.ports:
        PLANTS[orders.plant]()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    workers = [_make(orders, number, stop) for number in range(len(orders.clients))]
    threads = [threading.Thread(target=_guarded, args=(worker,), name=worker.recorder.client) for worker in workers]
    for thread in threads:
        thread.start()
    # With a timeout, so that a signal which another thread got is handled.
    while not stop.wait(0.2):
        pass
    for thread in threads:
        thread.join()


def _make(orders: Orders, number: int, stop: threading.Event) -> Client | Changer:
    opener: Opener = EmbeddedOpener(orders.data, orders.local, orders.catalog)
    if orders.ports:
        opener = WireOpener(tuple(orders.ports))
    recorder = Recorder(Path(orders.history), orders.clients[number])
    if number < orders.writers:
        pace = Pace(orders.start_us, orders.round_us)
        return Client(opener, orders.first + number, orders.seed, pace, recorder, stop)
    return Changer(opener, orders.first + number, orders.seed, recorder, stop)


def _guarded(worker: Client | Changer) -> None:
    try:
        worker.run()
    except BaseException:  # noqa: BLE001 - whatever it is, the report has it
        worker.recorder.note("broken", message=traceback.format_exc())


if __name__ == "__main__":
    main(sys.argv[1:])
