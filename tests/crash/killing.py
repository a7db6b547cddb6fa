"""One kill: a process runs the script until a fault point ends it, and what it leaves behind is judged."""

import signal
from collections.abc import Iterable
from dataclasses import dataclass, field

from seachange.engine.node.node import Node
from tests.crash.script import contents_after, make_script
from tests.crash.workload import run_step
from tests.support.databases import CATALOGS
from tests.support.judge import inspect, judge, judge_garbage, judge_script
from tests.support.nodes import HOUR_MS, Place, open_ported_node
from tests.support.workers import Workers

SEED = 20_261
# A killed process is known to be gone: nothing waits for the expiry of its node, and a busy process keeps its epoch.
EXPIRY_MS = HOUR_MS
STEPS_AFTER = 3


@dataclass
class Tally:
    """What the suite did: kills by catalog and fault point, and every violation that it did not ask for."""

    kills: list[tuple[str, str]] = field(default_factory=list)
    violations: int = 0

    def line(self) -> str:
        points = {point for _, point in self.kills}
        catalogs = [name for name in CATALOGS if any(name == catalog for catalog, _ in self.kills)]
        return (
            f"crash suite: {len(self.kills)} kills at {len(points)} fault points"
            f" on {', '.join(catalogs)}: {self.violations} violations"
        )


def add_up(tallies: Iterable[Tally]) -> Tally:
    """The tally of several tests."""
    total = Tally()
    for tally in tallies:
        total.kills += tally.kills
        total.violations += tally.violations
    return total


def run_until_killed(workers: Workers, place: Place, fault: str, seed: int, power_cut: str | None = None) -> int:
    """Runs the script in a process that dies at `fault`; gives how many steps it acknowledged."""
    worker = workers.take()
    options = {"expiry_ms": EXPIRY_MS, "fault": fault, "power_cut": power_cut}
    worker.send("open", data=str(place.data), catalog=place.catalog, **options)
    worker.send("run", seed=seed, first=0, last=len(make_script(seed)))
    heard = list(worker.hear_until_silent())
    ended = worker.wait()
    assert ended == -signal.SIGKILL, f"{fault} was not reached: {heard[-1:]}, ended with {ended}\n{worker.complaint}"
    return sum("ack" in answer for answer in heard)


def judge_after(place: Place, seed: int, acknowledged: int, thorough: bool = False) -> list[str]:
    """What is wrong with a database whose process died after so many acknowledged steps; `thorough`: the consistency
    checker is asked too, and the whole rest of the script is run."""
    node = open_ported_node(place, "survivor")
    try:
        problems = judge_script(node, seed, acknowledged)
        problems += inspect(node) if thorough else []
        problems += judge_garbage(node)
        if problems:
            return problems
        return judge_rest(node, seed, acknowledged, len(make_script(seed)) if thorough else acknowledged + STEPS_AFTER)
    finally:
        node.close()


def judge_rest(node: Node, seed: int, acknowledged: int, last: int) -> list[str]:
    """The database goes on working: the script up to `last` ends as if nothing had happened."""
    last = min(last, len(make_script(seed)))
    before, after = contents_after(seed, acknowledged), contents_after(seed, acknowledged + 1)
    happened = before != after and not judge(node, [after])
    for number in range(acknowledged + happened, last):
        run_step(node, seed, number)
    return judge(node, [contents_after(seed, last)]) + judge_garbage(node)
