"""One change after the other under concurrent work: read-heavy, insert-heavy, update-heavy and mixed.

A column is added and the one before it dropped, so that the table has rows in ever more layouts. The work is a closed
loop of one session; a round of it alone and one with changes, in turns, here and on PostgreSQL.
"""

import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample
from bench.headline.work import MIXES
from bench.measures.processes import postgres_server
from bench.peers.client import Client, run_module

ROWS = 10_000
CHANGES = ("alter table t add column c{new} integer default 7", "alter table t drop column c{old}")
# A change is begun so long after the last was made: without any rest a lock would never be let
# go of.
REST_SECONDS = 0.02


@dataclass
class Rounds:
    """The results of one side, one value per round."""

    alone: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def kept(self) -> Sample:
        pairs = zip(self.changed, self.alone, strict=True)
        return Sample(tuple(100 * changed / alone for changed, alone in pairs))


class Side:
    """A system: one process works, the other changes the table."""

    def __init__(self, name: str, target: dict[str, str], stack: ExitStack) -> None:
        self._worker, self._changer = (self._start(name, stack) for _ in range(2))
        self._changes = (text.format(new=number, old=number - 1) for number in count(1) for text in CHANGES)
        self._changer.request("open", **target)
        self._changer.request("create", rows=ROWS)
        self._changer.request("execute", sql="alter table t add column c0 integer default 7")
        self._worker.request("open", **target)
        self.rounds = Rounds()

    def _start(self, name: str, stack: ExitStack) -> Client:
        return stack.enter_context(run_module(name, "bench.headline.work", Path(sys.executable)))

    def round(self, mix: str, seconds: float) -> None:
        """Work alone, then with changes."""
        self.rounds.alone.append(self._work(mix, seconds, changing=False))
        self.rounds.changed.append(self._work(mix, seconds, changing=True))

    def _work(self, mix: str, seconds: float, changing: bool) -> float:
        self._worker.send("work", mix=mix, rows=ROWS, seconds=seconds)
        if changing:
            self.rounds.changes.append(self._change(time.monotonic() + seconds) / seconds)
        answer = self._worker.receive()
        self.rounds.failed += answer["failed"]
        return float(answer["done"] / answer["elapsed"])

    def _change(self, end: float) -> int:
        made = 0
        while time.monotonic() < end:
            self._changer.request("execute", sql=next(self._changes))
            made += 1
            time.sleep(REST_SECONDS)
        return made


def evolution(mix: str, context: Context) -> Iterable[Reading]:
    scale = context.scale
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        folder = str(context.folder(mix))
        ours = Side("seachange", {"seachange": folder}, stack)
        theirs = Side("postgresql", {"postgresql": server.create_database()}, stack)
        for side in (ours, theirs):
            side.round(mix, scale.window_seconds / 2)
            side.rounds = Rounds()
        for _ in range(scale.rounds):
            for side in (ours, theirs):
                side.round(mix, scale.window_seconds / 2)
    one, other = ours.rounds, theirs.rounds
    failed = f"transactions failed: {one.failed}, PostgreSQL {other.failed}"
    facts = {"failed": one.failed, "failed_postgresql": other.failed}
    yield Reading(f"evolution.{mix}.kept", "%", one.kept, other.kept, failed, facts)
    rates = "while columns are added and dropped"
    yield Reading(f"evolution.{mix}.rate", "/s", Sample(tuple(one.changed)), Sample(tuple(other.changed)), rates)
    yield Reading(f"evolution.{mix}.changes", "/s", Sample(tuple(one.changes)), Sample(tuple(other.changes)), "changes")


MEASURES = tuple(Measure(f"evolution.{mix}", partial(evolution, mix), bounds_of(f"evolution.{mix}")) for mix in MIXES)
