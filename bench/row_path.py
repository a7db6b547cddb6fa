"""CPU time of pgbench's transactions, by message, without a socket: `python -m bench.row_path`.

The messages of a prepared round (Bind, Describe, Execute, Sync) are given to a `ClientConnection` on one thread, so
that only Seachange's own work is counted; it is the least of many runs, which depends little on other work.
`--profile S` (or N) prints where the calls of a transaction spend their time. With another `src` on PYTHONPATH it
measures that one.
"""

import argparse
import asyncio
import cProfile
import gc
import pstats
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import cast

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.server.connection import ClientConnection
from seachange.server.inbox import Inbox
from seachange.server.messages import MessageFrame
from seachange.server.outbox import Outbox

ACCOUNTS, TELLERS = 100_000, 10
# How often a transaction is repeated in a row, and how often that is done.
TIMES, ROUNDS = 200, 12
STATEMENTS_MAX = 100
_SHOWN_MAX = 60
_SET_UP = (
    "create table pgbench_branches (bid int primary key, bbalance int, filler char(88))",
    "create table pgbench_tellers (tid int primary key, bid int, tbalance int, filler char(84))",
    "create table pgbench_accounts (aid int primary key, bid int, abalance int, filler char(84))",
    "create table pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "insert into pgbench_branches values (1, 0)",
    f"insert into pgbench_tellers select n, 1, 0 from generate_series(1, {TELLERS}) s(n)",
    f"insert into pgbench_accounts select n, 1, 0, '' from generate_series(1, {ACCOUNTS}) s(n)",
)
_STATEMENTS = {
    "begin": "BEGIN",
    "update": "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
    "select": "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
    "insert": "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
    "commit": "END",
}


class _Transport:
    """Drops what is written to it."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


class _Loop:
    """Runs at once what a thread leaves to the loop."""

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: object) -> None:
        call(*arguments)


class Client:
    def __init__(self, node: Node) -> None:
        self.transport = _Transport()
        loop, transport = cast(asyncio.AbstractEventLoop, _Loop()), cast(asyncio.WriteTransport, self.transport)
        self._inbox = Inbox(lambda: None)
        self.connection = ClientConnection(Session(node), self._inbox, Outbox(loop, transport), STATEMENTS_MAX)
        self.connection.begin({}, b"")
        for name, text in _STATEMENTS.items():
            self.send((MessageFrame(b"P", _texts(name, text) + bytes(2)), MessageFrame(b"S", b"")))

    def send(self, frames: tuple[MessageFrame, ...]) -> bytes:
        """The answer; an error is an exception."""
        self._inbox.put(frames)
        self.connection.work()
        answer = bytes(self.transport.written)
        self.transport.written.clear()
        assert not answer.startswith(b"E"), answer
        return answer

    def run(self, name: str, *values: int) -> bytes:
        return self.send(_round(name, *values))


def _texts(*texts: str) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


def _round(name: str, *values: int) -> tuple[MessageFrame, ...]:
    given = b"".join(struct.pack(">i", len(text)) + text for text in (b"%d" % value for value in values))
    bind = _texts("", name) + struct.pack(">hh", 0, len(values)) + given + struct.pack(">hh", 1, 0)
    return (
        MessageFrame(b"B", bind),
        MessageFrame(b"D", b"P\0"),
        MessageFrame(b"E", bytes(5)),
        MessageFrame(b"S", b""),
    )


def transactions(client: Client) -> dict[str, Callable[[], None]]:
    keys = count()

    def aid() -> int:
        return next(keys) * 7_919 % ACCOUNTS + 1

    def read() -> None:
        client.run("select", aid())

    def write() -> None:
        found = aid()
        client.run("begin")
        client.run("update", 7, found)
        client.run("select", found)
        client.run("insert", 1, 1, found, 7)
        client.run("commit")

    return {"S": read, "N": write}


@contextmanager
def opened() -> Iterator[Client]:
    with tempfile.TemporaryDirectory() as folder:
        node = open_node(Path(folder) / "data")
        try:
            session = Session(node)
            for text in _SET_UP:
                session.execute(text)
            session.close()
            client = Client(node)
            yield client
            client.connection.session.close()
        finally:
            node.close()


def least_us(work: Callable[[], None]) -> float:
    """Of the CPU time of this thread."""
    least = float("inf")
    for _ in range(ROUNDS):
        before = time.thread_time_ns()
        for _ in range(TIMES):
            work()
        least = min(least, (time.thread_time_ns() - before) / TIMES / 1_000)
    return least


def messages_us(client: Client) -> dict[str, float]:
    """The least CPU time of each message of a transaction that writes."""
    taken: dict[str, list[int]] = {name: [] for name in _STATEMENTS}
    for number in range(TIMES * ROUNDS // 4):
        aid = number * 7_919 % ACCOUNTS + 1
        values: dict[str, tuple[int, ...]] = {"update": (7, aid), "select": (aid,), "insert": (1, 1, aid, 7)}
        for name in _STATEMENTS:
            frames = _round(name, *values.get(name, ()))
            before = time.thread_time_ns()
            client.send(frames)
            taken[name].append(time.thread_time_ns() - before)
    return {name: sorted(times)[len(times) // 4] / 1_000 for name, times in taken.items()}


def profile(work: Callable[[], None]) -> pstats.Stats:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(TIMES):
        work()
    profiler.disable()
    return pstats.Stats(profiler)


def warm(client: Client) -> dict[str, Callable[[], None]]:
    """The transactions, with plans compiled and row groups decoded; nothing is collected from now on."""
    work = transactions(client)
    for run in work.values():
        for _ in range(TIMES):
            run()
    gc.disable()
    return work


def print_time_line() -> None:
    """The transactions, and the messages of the longer one."""
    with opened() as client:
        for name, run in warm(client).items():
            calls = profile(run).total_calls / TIMES  # type: ignore[attr-defined]
            print(f"-{name}: {least_us(run):.0f} us of CPU, {calls:.0f} calls")
        for name, took_us in messages_us(client).items():
            print(f"    {name}: {took_us:.0f} us")
    gc.enable()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.row_path", description=__doc__)
    parser.add_argument("--profile", choices=("S", "N"), help="where calls spend their time")
    options = parser.parse_args()
    if not options.profile:
        print_time_line()
        return
    with opened() as client:
        profile(warm(client)[options.profile]).sort_stats("tottime").print_stats(_SHOWN_MAX)


if __name__ == "__main__":
    main()
