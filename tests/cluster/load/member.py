"""A process of the load: a node with writers and a changer, until SIGTERM.

python -m tests.cluster.load.member DATA CATALOG NUMBER SEED LOG
"""

import signal
import sys
import threading
import traceback
from pathlib import Path

from seachange.engine.session.session import Session
from tests.cluster.load.ddl import Changer
from tests.cluster.load.dml import Writer
from tests.cluster.load.log import Log
from tests.support.nodes import Place, ShiftedClock, open_ported_node

WRITERS = 2
EXPIRY_MS = 2_000


def main() -> None:
    data, catalog, number, seed, log_path, clock_offset_s = sys.argv[1:]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log = Log(Path(log_path))
    clock = ShiftedClock(int(clock_offset_s))
    node = open_ported_node(Place(Path(data), catalog or None), f"member {number}", EXPIRY_MS, clock)
    # As in production.
    node.maintenance.paused = False
    sessions = [Session(node) for _ in range(WRITERS + 1)]
    writers = [Writer(sessions[n], int(number) * WRITERS + n, int(seed), log, stop) for n in range(WRITERS)]
    workers = [*writers, Changer(sessions[-1], int(number), int(seed), log, stop)]
    threads = [threading.Thread(target=guarded, args=(worker, log, stop)) for worker in workers]
    for thread in threads:
        thread.start()
    # With a timeout: a signal that another thread took is heard of only when this one wakes.
    while not stop.wait(0.2):
        pass
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()
    node.close()
    log.note("ended")


def guarded(worker: Writer | Changer, log: Log, stop: threading.Event) -> None:
    try:
        worker.run()
    except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
        log.note("broken", message=traceback.format_exc())
        stop.set()


if __name__ == "__main__":
    main()
