"""A writer process: `python -m seachange.replay.writer_process`, with its orders on standard input.

The first line is its assignment, the others are orders (`WriterOrder`); it answers READY and LEFT, and with its tally
when the input ends or it gets STOP.
"""

from __future__ import annotations

import queue
import sys
import threading
from contextlib import closing

from seachange.engine.database.opening import acquire_node, release_node
from seachange.engine.session.session import Session
from seachange.replay.assignment import LEFT, READY, WriterAssignment, WriterOrder
from seachange.replay.writer import ReplayWriter
from seachange.runtime.clock import SYSTEM_CLOCK


def main() -> int:
    assignment = WriterAssignment.from_line(sys.stdin.readline())
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    node = acquire_node(assignment.data, assignment.catalog)
    try:
        with closing(Session(node)) as session:
            writer = ReplayWriter(session, assignment.foresight, SYSTEM_CLOCK, assignment.seed, assignment.number)
            _say(READY)
            _work(writer, orders, assignment.pace_ms)
            _say(writer.tally.to_json())
    finally:
        release_node(node)
    return 0


def _listen(orders: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        orders.put(line.rstrip("\n"))
    # The parent process is gone.
    orders.put(WriterOrder.STOP)


def _work(writer: ReplayWriter, orders: queue.SimpleQueue[str], pace_ms: int) -> None:
    while True:
        started = SYSTEM_CLOCK.steady_us()
        writer.run_transaction()
        rest_us = pace_ms * 1_000 - (SYSTEM_CLOCK.steady_us() - started)
        try:
            order, *names = orders.get(timeout=max(rest_us, 0) / 1_000_000).split("\t")
        except queue.Empty:
            continue
        if order == WriterOrder.STOP:
            return
        writer.left = frozenset(names)
        _say(LEFT)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
