"""How far a statement travels inside Seachange: its calls, and its frames from the wire to the row.

`python -m bench.frames [--stack]`; run with another `src` on PYTHONPATH it measures that one. Every statement is
sent by psycopg to a server in this process and was sent before, so that plans and prepared statements exist.
"""

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

import seachange
from seachange.engine.database.opening import open_node
from seachange.server.login import AuthConfig
from seachange.server.server import Server, ServerOptions

_HOST = "127.0.0.1"
_PATIENCE_S = 60.0
_OWN = str(Path(seachange.__file__).parent)
# The first frame of a statement, and the last one before its row.
_WIRE = "ClientSocket._work"
_ROW = "RowWriter.insert"
_SET_UP = (
    "create table t (id bigint primary key, v text)",
    "insert into t select n, n::text from generate_series(1, 100) s(n)",
)
_STATEMENTS: dict[str, tuple[tuple[str, tuple[object, ...]], ...]] = {
    "INSERT, prepared": tuple(("insert into t values (%s, %s)", (n, "x")) for n in range(1_000, 1_005)),
    "SELECT by key, prepared": tuple(("select v from t where id = %s", (n,)) for n in range(1, 6)),
    "ALTER COLUMN TYPE": tuple((f"alter table t alter column v type varchar({n})", ()) for n in (90, 80)),
}


class FrameCount:
    """The profile function of the server's threads: counts calls of our own functions while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.clear()

    def clear(self) -> None:
        self.calls = 0
        self.deepest = 0
        self.to_row: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.is_on or event != "call" or not frame.f_code.co_filename.startswith(_OWN):
            return
        stack = own_frames(frame)
        if _WIRE not in stack:
            # Threads of the node that work in the background.
            return
        stack = stack[stack.index(_WIRE) :]
        self.calls += 1
        self.deepest = max(self.deepest, len(stack))
        if stack[-1] == _ROW:
            self.to_row = stack


def own_frames(frame: FrameType | None) -> list[str]:
    """The names of our functions on the stack, outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(_OWN):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found[::-1]


@contextmanager
def served(data: Path) -> Iterator[str]:
    """The address of a server of this process that trusts its clients."""
    node = open_node(data)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[Server, int]:
        server = Server(node, ServerOptions(_HOST, 0, AuthConfig({}, trust=True), grace_seconds=5.0))
        return server, await server.start()

    try:
        server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(_PATIENCE_S)
        yield f"postgresql://seachange@{_HOST}:{port}/seachange"
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        node.close()


def count_frames() -> Iterator[tuple[str, FrameCount]]:
    """For the last statement of each kind."""
    count = FrameCount()
    threading.setprofile(count)
    try:
        yield from _count_each(count)
    finally:
        threading.setprofile(None)


def _count_each(count: FrameCount) -> Iterator[tuple[str, FrameCount]]:
    with (
        tempfile.TemporaryDirectory() as data,
        served(Path(data)) as url,
        psycopg.connect(url, autocommit=True) as client,
    ):
        for text in _SET_UP:
            client.execute(text)
        for name, runs in _STATEMENTS.items():
            for text, values in runs:
                count.clear()
                count.is_on = True
                client.execute(text, values, prepare=bool(values))
                count.is_on = False
            yield name, count


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.frames", description=__doc__)
    parser.add_argument("--stack", action="store_true", help="print the frames from the wire to the row")
    options = parser.parse_args()
    print(f"{'statement':<26}{'calls':>8}{'deepest':>9}{'to the row':>12}")
    for name, count in count_frames():
        print(f"{name:<26}{count.calls:>8}{count.deepest:>9}{len(count.to_row) or '':>12}")
        if options.stack and count.to_row:
            print("\n".join(f"    {frame}" for frame in count.to_row))


if __name__ == "__main__":
    main()
