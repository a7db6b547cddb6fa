"""A worker is killed in the middle of a backfill: another finishes it with what the first has done."""

import signal
from collections.abc import Iterator

import pytest

from seachange.changer.job import Job, read_job
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.verify.consistency import check
from tests.support.forks import Fork
from tests.support.nodes import Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import process_state, wait_until

# More rows than a commit leaves in the catalog, so that there are files, and fewer: two units and then their merge.
BULK_ROWS, FEW_ROWS, INLINE_ROWS_MAX = 300, 50, 100
JOB = JobId(1)


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    """Where the change is begun and looked at; its own worker does nothing."""
    opened = open_ported_node(place, "looks on")
    opened.jobs.paused = True
    opened.parts.inline_rows_max = INLINE_ROWS_MAX
    session = Session(opened)
    session.execute("create table item (id int primary key, code text)")
    session.execute(f"insert into item select i, 'c' || (i * 7919) from generate_series(1, {BULK_ROWS}) g(i)")
    few = (BULK_ROWS + 1, BULK_ROWS + FEW_ROWS)
    session.execute(f"insert into item select i, 'c' || (i * 7919) from generate_series({few[0]}, {few[1]}) g(i)")
    session.execute("set seachange.concurrently = 'async'")
    session.close()
    yield opened
    opened.close()


def start_worker(place: Place, fault: str) -> Fork:
    return Fork("seachange.cli.main", "worker", *place.options, fault=fault)


def begin(node: Node) -> None:
    """By a node that ends at once, so that the job is anybody's."""
    session = Session(node)
    session.execute("set seachange.concurrently = 'async'")
    assert session.execute("create index concurrently item_code on item (code)").rows == [(JOB,)]
    session.close()
    node.parts.catalog.end_node(node.epoch.epoch)


def recorded(node: Node) -> Job:
    record = node.parts.catalog.job(JOB)
    assert record is not None
    return read_job(record)


def test_another_worker_does_not_do_finished_units_again(place: Place, node: Node):
    begin(node)
    with start_worker(place, "job.unit:2") as first:
        assert first.wait(PATIENCE_S) == -signal.SIGKILL
    before = recorded(node)
    assert len(before.units) == 2
    # Nothing waits for the dead node's expiry.
    for record in node.parts.catalog.nodes():
        node.parts.catalog.end_node(record.epoch)
    with start_worker(place, "job.built:1:stop") as second:
        wait_until(lambda: process_state(second.pid) == "T", "the second to have built the index")
        after = recorded(node)
        second.send_signal(signal.SIGCONT)
        wait_until(lambda: recorded(node).is_finished, "the job to end")
    # The same units with the same files first, and only then others.
    assert after.units[:2] == before.units
    names = [unit.unit for _, unit in after.units]
    assert len(names) == len(set(names)) > 2
    assert recorded(node).status is JobStatus.SUCCEEDED
    assert not check(node)
