"""Clients of one process and of several that write to the same few rows: their rate, and the conflicts they saw."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample
from bench.hot_rows import BRANCHES, SEED, Client, check_sums, make_tables
from bench.peers.client import run_hot_rows

SESSIONS = 8
PROCESSES = 4
# What a client would have to run again.
CONFLICTS = ("40001", "40P01")


def window(folder: Path, seconds: float, blocks: bool) -> tuple[float, int]:
    """Transactions per second of all sessions, and the conflicts that their clients saw."""
    make_tables(folder)
    until = threading.Event()
    clients = [Client(folder, n, blocks, until) for n in range(SESSIONS)]
    for client in clients:
        client.connect()
    start = time.perf_counter()
    for client in clients:
        client.start()
    until.wait(seconds)
    until.set()
    for client in clients:
        client.join()
    elapsed = time.perf_counter() - start
    seen = sum((client.seen for client in clients), Counter[str]())
    check_seen(seen)
    check_sums(folder)
    return sum(client.transactions for client in clients) / elapsed, sum(seen.values())


def processes_window(folder: Path, seconds: float) -> tuple[float, int]:
    """The same for several processes with one session each."""
    make_tables(folder)
    with ExitStack() as stack:
        nodes = [stack.enter_context(run_hot_rows()) for _ in range(PROCESSES)]
        for number, node in enumerate(nodes):
            node.request("open", folder=str(folder), first=number, sessions=1)
        start = time.perf_counter()
        for node in nodes:
            node.request("start")
        threading.Event().wait(seconds)
        answers = [node.request("stop") for node in nodes]
        elapsed = time.perf_counter() - start
    seen = sum((Counter(answer["seen"]) for answer in answers), Counter[str]())
    check_seen(seen)
    check_sums(folder)
    return sum(answer["transactions"] for answer in answers) / elapsed, sum(seen.values())


def check_seen(seen: Counter[str]) -> None:
    unexpected = {state: n for state, n in seen.items() if state not in CONFLICTS}
    assert not unexpected, f"unexpected errors: {unexpected}"


def hot_rows(context: Context) -> Iterable[Reading]:
    scale = context.scale
    note = f"{SESSIONS} sessions, {BRANCHES} branch, seed {SEED}; four statements each"
    for name, blocks in (("autocommit", False), ("blocks", True)):
        windows = [window(context.folder(f"{name}/{n}"), scale.window_seconds, blocks) for n in range(scale.rounds)]
        yield from readings(name, windows, note)
    folders = [context.folder(f"processes/{n}") for n in range(scale.rounds)]
    windows = [processes_window(folder, scale.window_seconds) for folder in folders]
    note = f"{PROCESSES} processes with a session each, {BRANCHES} branch, seed {SEED}; blocks of four statements"
    yield from readings("processes", windows, note)


def readings(name: str, windows: Iterable[tuple[float, int]], note: str) -> Iterable[Reading]:
    rates, conflicts = zip(*windows, strict=True)
    yield Reading(f"contention.{name}.transactions", "/s", Sample(rates), note=note)
    yield Reading(f"contention.{name}.conflicts", "", Sample(conflicts), note="seen by clients")


MEASURES = (Measure("contention", hot_rows, bounds_of("contention")),)
