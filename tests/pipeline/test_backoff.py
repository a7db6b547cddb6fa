"""Work waits while it slows down the statements of clients, and never for good."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.meters import BOUNDS_US, Meters
from seachange.engine.context.pace import FOREGROUND, STATEMENTS_MIN, WINDOW_STATEMENTS, WINDOW_US_MAX, PaceMeter
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.model.jobs import JobStatus
from seachange.model.pace import Pace
from seachange.pipeline.throttling.backoff import FLOOR_US, PATIENCE_US, Foreground, most_slowed
from seachange.pipeline.throttling.throttle import HOLD_SECONDS, Throttling
from seachange.runtime.clock import SystemClock
from tests.changer.changing import UNIQUE, ask, begin, judge, prepare
from tests.support.nodes import Place

MS = 1_000


class ManualClock(SystemClock):
    def __init__(self) -> None:
        self.now_us = 0

    def steady_us(self) -> int:
        return self.now_us

    def advance_us(self, us: int) -> None:
        self.now_us += us


latencies = st.integers(0, 100 * MS)
paces = st.dictionaries(st.sampled_from("abc"), st.builds(Pace, latencies, latencies), max_size=3)


@given(paces, st.floats(1, 10))
def test_work_waits_only_for_a_slowed_node(found: dict[str, Pace], ratio: float) -> None:
    clock = ManualClock()
    before = Foreground(ratio, lambda: {node: Pace(0, pace.usual_us) for node, pace in found.items()}, clock)
    assert before.reason() == ""
    before.ask = lambda: found
    clock.advance_us(1_000_000)
    reason = before.reason()
    slowed = [
        node for node, pace in found.items() if pace.usual_us and pace.latency_us > ratio * max(pace.usual_us, FLOOR_US)
    ]
    assert bool(reason) == bool(slowed)
    worst = most_slowed(found, {node: pace.usual_us for node, pace in found.items()})
    assert not reason or (worst is not None and worst.node in slowed and f"node {worst.node} " in reason)


@given(st.lists(st.tuples(latencies, latencies), min_size=1, max_size=40))
def test_usual_latency_is_that_before_the_work(moments: list[tuple[int, int]]) -> None:
    """The work does not get used to the latency that it causes."""
    clock = ManualClock()
    moment = Pace(2 * MS, 2 * MS)
    foreground = Foreground(3.0, lambda: {"a": moment}, clock)
    foreground.reason()
    for latency, usual in moments:
        moment = Pace(latency, usual)
        clock.advance_us(600_000)
        foreground.begin()
        assert bool(foreground.reason()) == (latency > 6 * MS)


@given(st.lists(st.integers(0, 50 * MS), max_size=60))
def test_back_off_is_limited(latency: list[int]) -> None:
    clock = ManualClock()
    told = iter([0, *latency])
    foreground = Foreground(2.0, lambda: {"a": Pace(next(told, 50 * MS), 1 * MS)}, clock)
    foreground.reason()
    waited = 0

    def pause(seconds: float) -> None:
        nonlocal waited
        waited += round(seconds * 1_000_000)
        clock.advance_us(round(seconds * 1_000_000))

    looks: list[None] = []
    Throttling(pause=pause, clock=clock, foreground=foreground).wait_for_foreground(lambda: looks.append(None))
    assert waited <= PATIENCE_US + HOLD_SECONDS * 1_000_000
    assert len(looks) * HOLD_SECONDS * 1_000_000 == waited


def observe(meters: Meters, count: int, took_us: int, command: str = "SELECT") -> None:
    with meters.statement(command):
        pass
    for _ in range(count - 1):
        meters.statements[command].observe(took_us)


def test_node_publishes_the_latency_of_its_statements() -> None:
    clock = ManualClock()
    meters = Meters(clock)
    pace = PaceMeter(meters)
    assert pace.read() == Pace()
    observe(meters, WINDOW_STATEMENTS, 4 * MS)
    first = pace.read()
    assert first.latency_us == first.usual_us
    assert 2.5 * MS <= first.latency_us <= 5 * MS
    # It does not change until the next window; DDL does not count.
    observe(meters, WINDOW_STATEMENTS, 60_000 * MS, "CREATE INDEX")
    assert pace.read() == first
    observe(meters, WINDOW_STATEMENTS, 40 * MS, FOREGROUND[1])
    slow = pace.read()
    assert slow.latency_us >= 25 * MS
    assert first.usual_us < slow.usual_us < slow.latency_us
    for _ in range(500):
        observe(meters, WINDOW_STATEMENTS, 40 * MS)
        before, slow = slow, pace.read()
        assert before.usual_us <= slow.usual_us <= slow.latency_us
    # Too few statements say nothing, and the usual latency stays.
    observe(meters, STATEMENTS_MIN - 1, 4 * MS)
    clock.advance_us(WINDOW_US_MAX)
    assert pace.read() == Pace(0, slow.usual_us)
    assert BOUNDS_US[0] < FLOOR_US


class Watching(SessionInterrupts):
    """Records the pauses of throttled work."""

    def __init__(self, hook: Callable[[], None]) -> None:
        super().__init__()
        self.hook = hook
        self.paused = 0

    def pause(self, seconds: float) -> None:
        self.paused += 1
        self.hook()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    place = Place(tmp_path / "data")
    prepare(place)
    worker = open_node(place.data, place.catalog, name="worker")
    serving = open_node(place.data, place.catalog, name="serving")
    for node in (worker, serving):
        node.jobs.paused = node.maintenance.paused = True
    yield worker, serving
    serving.close()
    worker.close()


def test_a_job_backs_off_for_the_clients_of_another_node(nodes: tuple[Node, Node]) -> None:
    worker, serving = nodes

    def serve(took_us: int) -> None:
        observe(serving.parts.meters, WINDOW_STATEMENTS, took_us)
        serving.beat()

    seen: list[str] = []

    def held_back() -> None:
        ((waiting,),) = ask(worker, "select waiting_for from seachange.jobs")
        if waiting is not None:
            seen.append(waiting)
            serve(2 * MS)

    serve(2 * MS)
    usual: Mapping[str, float] = dict(ask(worker, "select name, usual_latency_ms from seachange.nodes"))
    assert 1 <= usual["serving"] <= 2.5
    job_id = begin(worker, "set seachange.pipeline_backoff_ratio = 3", UNIQUE)
    interrupts = Watching(held_back)

    def told(job: Job) -> None:
        # Its first unit is done, so it knows how it was before.
        if job.units and not seen:
            serve(40 * MS)

    with worker.jobs.holding(job_id):
        worker.jobs.run(job_id, Conditions(lambda seconds: None, interrupts, told, 100))
    judge(worker, job_id, JobStatus.SUCCEEDED)
    assert interrupts.paused
    assert seen[0].startswith("foreground: statements of node serving take ")
    events = [e for (e,) in ask(worker, "select event from seachange.events where job_id is not null order by seq")]
    assert any(e.startswith("backs off: foreground") for e in events)
    assert ask(worker, "select waiting_for from seachange.jobs") == [(None,)]
