"""Work that does not fit on the disk is refused before it begins; when space runs out later it waits, and resumes."""

from collections.abc import Callable, Iterator

import pytest

from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.changer.job import Job
from seachange.changer.retry_policy import ATTEMPTS_MAX
from seachange.changer.runner import SPACE_S
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.filesystem import LocalFileSystem
from seachange.storage.duck import Duck
from seachange.storage.warehouse import Warehouse
from tests.changer.changing import UNIQUE, ask, begin, judge
from tests.engine.ports import HOUR_MS
from tests.support.nodes import Place

PLENTY = 1 << 40
WAITING = "select waiting_for from seachange.jobs"
# In a file, beside rows in the catalog: two units.
MORE = "insert into item select i, 'c' || i, i % 7 from generate_series(1000, 12000) g(i)"


class Disk(LocalFileSystem):
    """A disk with as much free space as a test says."""

    free = PLENTY

    def free_bytes(self) -> int:
        return self.free


@pytest.fixture
def disk(shop: Place) -> Disk:
    return Disk(shop.data / "segments")


@pytest.fixture
def node(shop: Place, disk: Disk) -> Iterator[Node]:
    parts = NodeParts(
        data=shop.data,
        catalog=open_catalog(shop.catalog, shop.data, SYSTEM_CLOCK, SYSTEM_ENTROPY),
        files=disk,
        warehouse=Warehouse(disk),
        duck=Duck(shop.data / "tmp"),
        clock=SYSTEM_CLOCK,
        entropy=SYSTEM_ENTROPY,
    )
    opened = Node(parts, "tight", HOUR_MS)
    opened.jobs.paused = True
    yield opened
    opened.close()


def run(
    node: Node, job_id: JobId, pause: Callable[[float], None], told: Callable[[Job], None] = lambda job: None
) -> Job:
    with node.jobs.holding(job_id):
        return node.jobs.run(job_id, Conditions(pause, SessionInterrupts(), told, 100))


def spaces(node: Node) -> list[str]:
    return [e for (e,) in ask(node, "select event from seachange.events order by seq") if "space" in e]


def test_work_that_does_not_fit_is_refused_before_it_begins(node: Node, disk: Disk):
    disk.free = (128 << 20) + 1_000
    session = Session(node)
    with pytest.raises(errors.OperationalError) as problem:
        session.execute("create unique index item_code on item (code)")
    assert problem.value.sqlstate == "53100"
    text = str(problem.value)
    assert "item_code of table item" in text
    assert "must leave 128.0 MB free" in text
    assert "128.0 MB are free" in text
    assert str(disk.folder) in text
    # It is not tried again.
    assert ask(node, "select event from seachange.events where event like 'retries%'") == []
    judge(node, 1, JobStatus.FAILED)
    session.execute("set seachange.pipeline_free_space = 0")
    disk.free = 1 << 20
    session.execute("create unique index item_code on item (code)")
    session.close()
    judge(node, 2, JobStatus.SUCCEEDED)


def test_work_of_a_block_that_does_not_fit_fails_the_block(node: Node, disk: Disk):
    session = Session(node)
    session.execute("begin")
    session.execute("insert into item values (9000, 'c9000', 1)")
    disk.free = (128 << 20) + 1_000
    with pytest.raises(errors.OperationalError) as problem:
        session.execute("create unique index item_code on item (code)")
    assert problem.value.sqlstate == "53100"
    session.execute("rollback")
    judge(node, 1, JobStatus.FAILED)
    disk.free = PLENTY
    session.execute("begin")
    session.execute("create unique index item_code on item (code)")
    session.execute("commit")
    session.close()
    judge(node, 2, JobStatus.SUCCEEDED)


def test_work_waits_for_space_and_resumes(node: Node, disk: Disk):
    """Without a limit: not only for ten attempts."""
    ask(node, MORE)
    job_id = begin(node, UNIQUE)
    waits: list[str] = []
    looks = 0

    def told(job: Job) -> None:
        if job.units and not waits:
            disk.free = 1_000

    def pause(seconds: float) -> None:
        nonlocal looks
        if seconds == SPACE_S:
            looks += 1
            if looks in (1, ATTEMPTS_MAX + 2):
                waits.append(ask(node, WAITING)[0][0])
            if len(waits) == 2:
                disk.free = PLENTY

    job = run(node, job_id, pause, told)
    assert looks == ATTEMPTS_MAX + 2
    assert waits[0] == waits[1]
    assert waits[0].startswith("space: ")
    assert f"in {disk.folder}" in waits[0]
    assert "1000 bytes are free" in waits[0]
    judge(node, job_id, JobStatus.SUCCEEDED)
    assert job.waiting == ""
    assert spaces(node) == [f"waits for {waits[0]}", "has disk space again"]


def test_a_job_that_waits_for_space_can_be_cancelled(node: Node, disk: Disk):
    ask(node, MORE)
    job_id = begin(node, UNIQUE)

    def told(job: Job) -> None:
        if job.units:
            disk.free = 0

    def pause(seconds: float) -> None:
        if seconds == SPACE_S:
            ask(node, f"cancel job {job_id}")

    run(node, job_id, pause, told)
    judge(node, job_id, JobStatus.CANCELED)
    assert ask(node, WAITING) == [(None,)]


class Unhurried(SessionInterrupts):
    """Records the requested pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("limit", ["0", "1kB"])
def test_job_obeys_the_io_rate_of_its_session(node: Node, limit: str):
    ask(node, MORE)
    job_id = begin(node, f"set seachange.pipeline_bytes_per_second = '{limit}'", UNIQUE)
    interrupts = Unhurried()
    with node.jobs.holding(job_id):
        node.jobs.run(job_id, Conditions(lambda seconds: None, interrupts, lambda job: None, 100))
    judge(node, job_id, JobStatus.SUCCEEDED)
    if limit == "0":
        assert interrupts.waited == []
    else:
        # Both units, merged, counted and compared: each waits for that before it.
        assert len(interrupts.waited) >= 3
        assert interrupts.waited[0] > 10
