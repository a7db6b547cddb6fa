"""Commits whose answer was lost: the id that the client chose says what became of them, and none happens twice."""

import signal
from collections.abc import Callable, Iterator

import psycopg
import pytest

from seachange.engine.node.node import Node
from seachange.model.ids import CommitId
from tests.crash.killing import Tally
from tests.crash.workload import with_tables
from tests.support.databases import MakePlace
from tests.support.judge import judge_markers
from tests.support.nodes import Place, open_ported_node
from tests.support.postgres import LocalPostgres
from tests.support.proxy import Loss, LossyProxy
from tests.support.tables import create_tables
from tests.support.workers import Answer, Worker, Workers, wait_until

EXPIRY_MS = 300
# What the sequencer of the PostgreSQL catalog locks.
SEQUENCER_LOCK = 5873429021876
on_postgresql = pytest.mark.parametrize("catalog_kind", ["postgresql"], indirect=True)


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    node = open_ported_node(place)
    with_tables(node, create_tables)
    yield node
    node.close()


def last_announced(heard: list[Answer]) -> CommitId:
    return CommitId(bytes.fromhex([answer["commit"] for answer in heard if "commit" in answer][-1]))


@pytest.mark.parametrize(
    ("point", "committed"),
    [
        ("commit.queued", False),
        ("commit.locked", False),
        ("commit.written", False),
        ("commit.decided", True),
        ("commit.applied", True),
    ],
)
def test_the_outcome_of_a_dead_client_is_looked_up(
    point: str, committed: bool, place: Place, catalog_kind: str, node: Node, workers: Workers, tally: Tally
):
    if (catalog_kind, point) == ("postgresql", "commit.written"):
        pytest.skip("lies inside the server; see the next test")
    worker = workers.take()
    worker.open(place, announces=True, fault=f"{point}:2")
    worker.send("stream", first=0, last=3)
    heard = list(worker.hear_until_silent())
    assert worker.wait() == -signal.SIGKILL
    tally.kills.append((catalog_kind, point))
    commit_id = last_announced(heard)
    outcome = node.parts.catalog.outcome(commit_id)
    assert (outcome is not None) == committed
    # The answer is final.
    assert node.parts.catalog.outcome(commit_id) == outcome
    assert not judge_markers(node, {0, 1} if committed else {0}, set())


@on_postgresql
def test_a_client_dies_while_the_server_commits(
    place: Place, node: Node, workers: Workers, tally: Tally, postgres_server: LocalPostgres
):
    assert place.catalog is not None
    worker = workers.take()
    worker.open(place, announces=True, expiry_ms=EXPIRY_MS)
    with psycopg.connect(place.catalog, autocommit=True) as bystander:
        bystander.execute("SELECT pg_advisory_lock(%s)", (SEQUENCER_LOCK,))
        worker.send("stream", first=0, last=1)
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        backend = wait_until(lambda: bystander.execute(waiting).fetchone(), "the commit to wait for the lock")
        heard = worker.hear_until("commit")
        worker.kill()
        tally.kills.append(("postgresql", "commit.written"))
        bystander.execute("SELECT pg_advisory_unlock(%s)", (SEQUENCER_LOCK,))
        still_there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
        wait_until(lambda: not bystander.execute(still_there, backend).fetchone(), "the server to finish")
    outcome = node.parts.catalog.outcome(last_announced(heard))
    assert not judge_markers(node, {0} if outcome else set(), set())


@pytest.fixture
def proxy(place: Place) -> Iterator[LossyProxy]:
    assert place.catalog is not None
    proxy = LossyProxy(place.catalog, b"COMMITID")
    yield proxy
    proxy.close()


@on_postgresql
@pytest.mark.parametrize(
    "losses",
    [[Loss.REQUEST], [Loss.REPLY], [Loss.REPLY, Loss.REPLY], [Loss.REQUEST, Loss.REPLY]],
    ids=["request", "reply", "reply twice", "request then reply"],
)
@pytest.mark.parametrize("bulk_every", [0, 1], ids=["inline", "bulk"])
def test_a_connection_is_lost_in_a_commit(
    losses: list[Loss], bulk_every: int, place: Place, node: Node, workers: Workers, proxy: LossyProxy
):
    worker = workers.take()
    worker.open(Place(place.data, proxy.url), token_prefix="COMMITID")
    proxy.lose(*losses)
    worker.send("stream", first=0, last=3, bulk_every=bulk_every)
    heard = worker.hear_until("done", "error")
    assert "done" in heard[-1], heard[-1]
    assert proxy.lost == len(losses)
    assert not judge_markers(node, {0, 1, 2}, set())


def break_connections(server: LocalPostgres, url: str) -> None:
    assert server.break_connections(url)


def restart(server: LocalPostgres, url: str) -> None:
    server.restart()


def kill_postmaster(server: LocalPostgres, url: str) -> None:
    server.kill()
    server.start()


def hear_acks(worker: Worker, count: int, acknowledged: set[int]) -> None:
    """Listens until that many more were acknowledged."""
    wanted = len(acknowledged) + count
    while len(acknowledged) < wanted:
        heard = worker.hear()
        assert "error" not in heard, heard
        if "ack" in heard:
            assert heard["ack"] not in acknowledged
            acknowledged.add(heard["ack"])


@on_postgresql
@pytest.mark.parametrize("disturb", [break_connections, restart, kill_postmaster])
def test_the_server_is_disturbed_in_a_stream_of_commits(
    disturb: Callable[[LocalPostgres, str], None],
    place_for: MakePlace,
    workers: Workers,
    postgres_server: LocalPostgres,
):
    place = place_for("disturbed")
    assert place.catalog is not None
    creator = open_ported_node(place)
    with_tables(creator, create_tables)
    creator.close()
    worker = workers.take()
    worker.open(place)
    worker.send("stream", first=0, last=1_000_000, bulk_every=10)
    acknowledged: set[int] = set()
    for _ in range(2):
        hear_acks(worker, 15, acknowledged)
        disturb(postgres_server, place.catalog)
    hear_acks(worker, 15, acknowledged)
    worker.kill()
    acknowledged |= {answer["ack"] for answer in worker.hear_until_silent() if "ack" in answer}
    node = open_ported_node(place)
    try:
        assert not judge_markers(node, acknowledged, {max(acknowledged) + 1})
    finally:
        node.close()
