"""A process that slept past its expiry: what it then tries to commit is not accepted, and its work can be repeated.

It has planned an insert without an index that another process adds meanwhile. Either half of the fence is enough: by
its epoch it is sent back to plan again, by its version of the table its commit is made to fit; without both the row
would be missing in the index for ever.
"""

from collections.abc import Iterator

import pytest

from seachange.engine.node.node import Node
from tests.crash.workload import with_tables
from tests.support.judge import judge_indexes, judge_markers
from tests.support.nodes import HOUR_S, Place, ShiftedClock, open_ported_node
from tests.support.tables import add_unique_index, create_tables
from tests.support.workers import Worker, Workers, wait_until

# Judged by the server's clock on PostgreSQL. On SQLite by the clock of the node that asks, an hour ahead here: were
# the sleeper to beat often, it might be stopped with the file lock in its hands, and stop everybody else.
EXPIRY_MS = {"sqlite": 10_000, "postgresql": 200}
MARKER = 5


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    node = open_ported_node(place, clock=ShiftedClock(HOUR_S))
    with_tables(node, create_tables)
    yield node
    node.close()


def stop_in_commit(
    workers: Workers, place: Place, point: str, without_fence: tuple[str, ...] = ()
) -> tuple[Worker, int]:
    """A process that will be stopped in its first commit, and its epoch."""
    worker = workers.take()
    expiry_ms = EXPIRY_MS["postgresql" if place.catalog else "sqlite"]
    epoch = worker.open(place, expiry_ms=expiry_ms, without_fence=without_fence)["opened"]
    worker.ask("arm", fault=f"{point}:1:stop")
    return worker, epoch


def expire(node: Node, epoch: int) -> None:
    def is_dead() -> bool:
        node.parts.catalog.expire_nodes()
        return all(record.epoch != epoch or not record.live for record in node.parts.catalog.nodes())

    wait_until(is_dead, f"epoch {epoch} to expire")


def sleep_through_an_index(workers: Workers, place: Place, node: Node, without_fence: tuple[str, ...]) -> list[str]:
    """Gives the kinds of refusals that the sleeper met."""
    worker, epoch = stop_in_commit(workers, place, "commit.queued", without_fence)
    worker.send("insert", table="first", row=[MARKER, None])
    worker.wait_stopped()
    expire(node, epoch)
    with_tables(node, lambda txn: add_unique_index(txn, "first", "marker"))
    worker.resume()
    heard = worker.hear_until("ack", "error")
    assert heard[-1].get("ack") == MARKER, heard[-1]
    if "epoch" not in without_fence:
        assert heard[-1]["epoch"] > epoch
    return [answer["kind"] for answer in heard if answer.get("refused") == "40001"]


def judge(node: Node) -> list[str]:
    txn = node.begin()
    try:
        return judge_indexes(node, txn)
    finally:
        txn.rollback()


@pytest.mark.parametrize(
    ("without_fence", "refusals"),
    [((), ["StaleNode"]), (("version",), ["StaleNode"]), (("epoch",), [])],
    ids=["whole", "epoch alone", "version alone"],
)
def test_the_sleeper_commits_with_the_index_that_it_slept_through(
    without_fence: tuple[str, ...], refusals: list[str], workers: Workers, place: Place, node: Node
):
    assert sleep_through_an_index(workers, place, node, without_fence) == refusals
    assert not judge(node)


def test_without_a_fence_the_index_misses_the_row(workers: Workers, place: Place, node: Node):
    assert sleep_through_an_index(workers, place, node, ("epoch", "version")) == []
    assert any("missing" in problem for problem in judge(node))


@pytest.mark.parametrize("bulk_every", [0, 1], ids=["inline", "bulk"])
@pytest.mark.parametrize("point", ["commit.queued", "commit.decided", "commit.applied"])
def test_who_sleeps_in_a_commit_commits_once(point: str, bulk_every: int, workers: Workers, place: Place, node: Node):
    worker, epoch = stop_in_commit(workers, place, point)
    worker.send("stream", first=0, last=3, bulk_every=bulk_every)
    worker.wait_stopped()
    expire(node, epoch)
    node.collect_garbage(0)
    worker.resume()
    assert "done" in worker.hear_until("done", "error")[-1]
    assert not judge_markers(node, {0, 1, 2}, set())
