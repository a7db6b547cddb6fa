"""The node's housekeeping folds by itself what has grown, and only that."""

import errno
from contextlib import closing

import duckdb
import pytest

from seachange import errors
from seachange.engine.node.maintenance import COLLECTION_US, COMPACT_AGE_SEQS, COMPACT_ROWS_MIN, has_grown
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.engine.session.session import Session
from seachange.model.ids import Seq
from seachange.pipeline.compaction.gc import GC_CLAIM
from seachange.planner.rules.release import CURRENT
from seachange.runtime.faults import FAULTS
from seachange.storage.image import IndexImage
from tests.engine.database import bulk, create, insert, rows
from tests.support.workers import wait_until


def image_of(node: Node) -> IndexImage:
    table = node.epoch.schemas.newest.within().by_name["public", "t"]
    return node.epoch.image(table, table.primary, node.epoch.applied)


def test_many_inline_rows_are_compacted(node: Node):
    create(node)
    for first in range(0, COMPACT_ROWS_MIN, 4_096):
        insert(node, *[(first + n, "x", n) for n in range(4_096)])
    before = rows(node)
    node.maintenance.compact_grown(node.epoch)
    assert node.maintenance.compactions == 1
    assert image_of(node).inline_rows == 0
    assert rows(node) == before
    assert len(before) == COMPACT_ROWS_MIN


def test_few_rows_are_left_alone_until_they_are_old(node: Node):
    create(node)
    insert(node, (1, "a", 1))
    node.maintenance.compact_grown(node.epoch)
    assert node.maintenance.compactions == 0
    image = image_of(node)
    assert not has_grown(image, node.epoch.applied)
    assert has_grown(image, Seq(node.epoch.applied + COMPACT_AGE_SEQS + 1))
    node.compact(node.epoch.schemas.newest.within().by_name["public", "t"], full=False)
    assert not has_grown(image_of(node), Seq(node.epoch.applied + 2 * COMPACT_AGE_SEQS))


def test_a_compaction_that_fails_leaves_nothing_behind(node: Node):
    create(node)
    insert(node, *[(n, "x", n) for n in range(100)])
    table = node.epoch.schemas.newest.within().by_name["public", "t"]

    def full() -> None:
        raise OSError(errno.ENOSPC, "full")

    FAULTS.arm("segment.written", full)
    with pytest.raises(errors.DiskFull):
        node.compact(table)
    FAULTS.disarm()
    # The intent was given up, so the space is free again without the node's end.
    assert node.collect_garbage(0) == 1
    assert node.parts.files.names() == []
    assert node.compact(table) == 1
    assert len(rows(node)) == 100


@pytest.mark.parametrize("problem", [errors.DiskFull(file="a segment"), duckdb.OutOfMemoryException("too wide")])
def test_an_index_that_cannot_be_compacted_does_not_block_others(
    node: Node, problem: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("seachange.engine.node.maintenance.COMPACT_ROWS_MIN", 10)
    create(node)
    create(node, name="u")
    for name in ("t", "u"):
        insert(node, *[(n, "x", n) for n in range(10)], table=name)
    met = len(rows(node)), len(rows(node, "u"))

    def fail() -> None:
        raise problem

    FAULTS.arm("compaction.planned", fail)
    with pytest.raises(type(problem)):
        node.maintenance.compact_grown(node.epoch)
    FAULTS.disarm()
    assert node.maintenance.compactions == 1
    assert (len(rows(node)), len(rows(node, "u"))) == met


def test_garbage_is_collected_after_a_collector_was_killed(node: Node):
    """Its epoch is still live in the catalog, and holds the claim."""
    create(node)
    bulk(node, (1, "a", 1))
    with closing(Session(node)) as session:
        session.execute("drop table t")
    catalog = node.parts.catalog
    killed = catalog.register_node("killed", 0, CURRENT.number)
    assert catalog.claim(killed, GC_CLAIM)
    wait_until(lambda: node.collect_garbage(0), "files that nothing refers to, and the end of who held the claim")
    assert not [other for other in catalog.nodes() if other.live and other.epoch == killed]


def test_maintenance_survives_any_failure(node: Node, monkeypatch: pytest.MonkeyPatch):
    collected: list[EpochState] = []

    def fail(epoch: EpochState) -> None:
        raise duckdb.OutOfMemoryException("too wide")

    monkeypatch.setattr(node.maintenance, "compact_grown", fail)
    monkeypatch.setattr(node.maintenance, "collect", collected.append)
    node.threads["maintenance"].stop()
    node.maintenance.paused = False
    now_us = node.parts.clock.steady_us()
    for _ in range(3):
        now_us += COLLECTION_US
        node.maintenance.step(now_us)
    assert collected == [node.epoch] * 3
    logged = [event.text for event in node.parts.catalog.events() if "too wide" in event.text]
    assert logged == ["maintenance of a node failed: OutOfMemoryException: too wide"]
