"""The node's housekeeping folds by itself what has grown, and only that."""

import errno
import threading

import duckdb
import pytest

from seachange import errors
from seachange.engine.node.maintenance_thread import FOLD_AGE_SEQS, FOLD_ROWS_MIN, MaintenanceThread, has_grown
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.model.ids import Seq
from seachange.runtime.faults import FAULTS
from seachange.storage.image import IndexImage
from tests.engine.database import create, insert, rows
from tests.support.patience import PATIENCE_S


def image_of(node: Node) -> IndexImage:
    table = node.epoch.schemas.newest.within().by_name["public", "t"]
    return node.epoch.image(table, table.primary, node.epoch.applied)


def test_many_inline_rows_are_folded(node: Node):
    create(node)
    for first in range(0, FOLD_ROWS_MIN, 4_096):
        insert(node, *[(first + n, "x", n) for n in range(4_096)])
    before = rows(node)
    node.keeper.compact_grown(node.epoch)
    assert node.keeper.compactions == 1
    assert image_of(node).inline_rows == 0
    assert rows(node) == before
    assert len(before) == FOLD_ROWS_MIN


def test_few_rows_are_left_alone_until_they_are_old(node: Node):
    create(node)
    insert(node, (1, "a", 1))
    node.keeper.compact_grown(node.epoch)
    assert node.keeper.compactions == 0
    image = image_of(node)
    assert not has_grown(image, node.epoch.applied)
    assert has_grown(image, Seq(node.epoch.applied + FOLD_AGE_SEQS + 1))
    node.compact(node.epoch.schemas.newest.within().by_name["public", "t"], full=False)
    assert not has_grown(image_of(node), Seq(node.epoch.applied + 2 * FOLD_AGE_SEQS))


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
def test_an_index_that_cannot_be_folded_keeps_nothing_else_from_it(
    node: Node, problem: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("seachange.engine.node.maintenance_thread.FOLD_ROWS_MIN", 10)
    create(node)
    create(node, name="u")
    for name in ("t", "u"):
        insert(node, *[(n, "x", n) for n in range(10)], table=name)
    met = len(rows(node)), len(rows(node, "u"))

    def fail() -> None:
        raise problem

    FAULTS.arm("compaction.planned", fail)
    with pytest.raises(type(problem)):
        node.keeper.compact_grown(node.epoch)
    FAULTS.disarm()
    assert node.keeper.compactions == 1
    assert (len(rows(node)), len(rows(node, "u"))) == met


def test_housekeeping_outlives_whatever_it_meets(node: Node, monkeypatch: pytest.MonkeyPatch):
    collected = threading.Event()

    def fail(epoch: EpochState) -> None:
        raise duckdb.OutOfMemoryException("too wide")

    keeper = MaintenanceThread(node.parts, node.keeper.retention)
    monkeypatch.setattr("seachange.engine.node.maintenance_thread._ROUND_SECONDS", 0.001)
    monkeypatch.setattr("seachange.engine.node.maintenance_thread._ROUNDS_PER_GC", 2)
    monkeypatch.setattr(keeper, "compact_grown", fail)
    monkeypatch.setattr(keeper, "collect", lambda epoch: collected.set())
    keeper.start(lambda: node.epoch)
    try:
        assert collected.wait(PATIENCE_S)
    finally:
        keeper.stop()
    told = [event.text for event in node.parts.catalog.events() if "too wide" in event.text]
    assert told == ["housekeeping of a node failed: OutOfMemoryException: too wide"]
