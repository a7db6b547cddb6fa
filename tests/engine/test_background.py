"""The background work of nodes, driven by a clock of the test's own and without threads."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.jobs.job_manager import ROUND_US
from seachange.engine.node.heartbeat import beat_us
from seachange.engine.node.maintenance import COMPACT_ROWS_MIN, COMPACTION_US
from seachange.engine.node.node import Node
from seachange.engine.node.watchdog import TICK_US
from seachange.engine.replica.node_parts import NodeParts
from tests.engine.database import create, insert
from tests.engine.ports import HOUR_MS, hooked_parts
from tests.support.nodes import EXPIRY_MS, Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

SECOND_US = 1_000_000


class ManualClock:
    def __init__(self) -> None:
        self.now_us = 1_000 * SECOND_US

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


class Simulation:
    """Two nodes of one database. Time passes only here."""

    def __init__(self, data: Path) -> None:
        self.clock = ManualClock()
        self.one, self.two = (
            open_ported_node(Place(data), name, clock=self.clock, threads=False) for name in ("one", "two")
        )

    def pass_time(self, us: int, *stepped: Node, works: tuple[str, ...] = ("heartbeat", "follower")) -> None:
        """Steps the works of the nodes when they are due."""
        end_us = self.clock.now_us + us
        due = {node.background[name]: self.clock.now_us for node in stepped for name in works}
        while True:
            work = min(due, key=lambda each: due[each])
            if due[work] > end_us:
                break
            self.clock.now_us = max(self.clock.now_us, due[work])
            due[work] = max(work.step(self.clock.now_us), self.clock.now_us + 1)
        self.clock.now_us = end_us

    def live(self) -> set[str]:
        self.one.parts.catalog.expire_nodes()
        return {record.name for record in self.one.parts.catalog.nodes() if record.live}


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    simulation = Simulation(tmp_path)
    yield simulation
    simulation.one.close()
    simulation.two.close()


def test_no_thread_runs_unless_it_is_asked_for(simulation: Simulation):
    assert not any(thread._thread.is_alive() for thread in simulation.one.threads.values())


def test_node_that_is_not_stepped_loses_its_epoch(simulation: Simulation):
    simulation.pass_time(3 * EXPIRY_MS * 1_000, simulation.one)
    assert simulation.live() == {"one"}


def test_node_that_is_stepped_keeps_its_epoch(simulation: Simulation):
    epoch = simulation.two.epoch
    simulation.pass_time(10 * EXPIRY_MS * 1_000, simulation.one, simulation.two)
    assert simulation.live() == {"one", "two"}
    assert simulation.two.epoch is epoch


def test_heartbeat_comes_early_when_it_is_wanted(simulation: Simulation):
    heartbeat = simulation.one.background["heartbeat"]
    now_us = simulation.clock.now_us
    assert heartbeat.step(now_us) == now_us + beat_us(EXPIRY_MS)
    simulation.clock.now_us += 1
    heartbeat.wake()
    heartbeat.step(simulation.clock.now_us)
    assert simulation.one.epoch.beaten_us == simulation.clock.now_us


def test_follower_catches_up_in_its_round(simulation: Simulation):
    create(simulation.one)
    seq = insert(simulation.one, (1, "a", 1))
    assert simulation.two.epoch.applied < seq
    simulation.pass_time(EXPIRY_MS * 1_000, simulation.one, simulation.two)
    assert simulation.two.epoch.applied >= seq


def test_compaction_is_done_when_it_is_due(simulation: Simulation, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("seachange.engine.node.maintenance.COMPACT_ROWS_MIN", 2)
    assert COMPACT_ROWS_MIN > 2
    node = simulation.one
    node.maintenance.paused = False
    create(node)
    insert(node, (1, "a", 1))
    insert(node, (2, "b", 2))
    simulation.pass_time(COMPACTION_US // 2, node, works=("maintenance",))
    assert node.maintenance.compactions == 0
    simulation.pass_time(COMPACTION_US, node, works=("maintenance",))
    assert node.maintenance.compactions > 0


def test_the_watchdog_ends_a_late_statement_when_it_is_stepped(simulation: Simulation):
    node, runner = simulation.one, LateRunner()

    def run() -> None:
        with node.watchdog.watch(runner, timeout_ms=1_000, growth_bytes_max=0):
            simulation.pass_time(SECOND_US - TICK_US, node, works=("watchdog",))
            assert runner.interrupts == 0
            simulation.pass_time(2 * TICK_US, node, works=("watchdog",))
            assert runner.interrupts > 0

    with pytest.raises(errors.QueryCanceled):
        run()


class LateRunner:
    def __init__(self) -> None:
        self.interrupts = 0
        self.is_settled = False

    def interrupt(self) -> None:
        self.interrupts += 1


# A node that is being set up.


@pytest.fixture
def looked(tmp_path: Path) -> tuple[NodeParts, threading.Event]:
    """The parts of a node that is not open yet, and whether anything has looked for jobs."""
    parts, catalog = hooked_parts(tmp_path)
    looked = threading.Event()
    catalog.before["jobs"] = looked.set
    return parts, looked


def test_a_node_takes_up_no_job_before_its_threads_are_started(looked: tuple[NodeParts, threading.Event]):
    parts, has_looked = looked
    node = Node(parts, "new", expiry_ms=HOUR_MS, threads=False)
    assert not has_looked.wait(1.5 * ROUND_US / SECOND_US)
    node.start()
    assert has_looked.wait(PATIENCE_S)
    node.close()


def test_a_new_node_leaves_jobs_to_others_for_a_round(tmp_path: Path):
    parts, catalog = hooked_parts(tmp_path)
    looked_us: list[int] = []
    catalog.before["jobs"] = lambda: looked_us.append(parts.clock.steady_us())
    begun_us = parts.clock.steady_us()
    node = Node(parts, "new", expiry_ms=HOUR_MS)
    wait_until(lambda: looked_us, "the node to look for jobs")
    node.close()
    # A slow machine only makes it later.
    assert looked_us[0] - begun_us > ROUND_US // 2
