"""Epochs, marks and claims."""

import pytest

from seachange import errors
from seachange.catalog.port import FORMAT, Catalog
from seachange.model.ids import Seq
from seachange.model.pace import Pace
from tests.catalog.builders import LONG_MS, accept, register


def test_epochs_rise_and_marks_start_at_the_head(catalog: Catalog):
    first = register(catalog)
    accept(catalog, first)
    second = catalog.register_node("other", LONG_MS)
    assert second > first
    one, two = catalog.nodes()
    assert (one.epoch, one.low_water, one.live) == (first, 0, True)
    assert (two.name, two.low_water, two.expiry_ms, two.format) == ("other", 1, LONG_MS, FORMAT)


def test_a_heartbeat_gives_the_head_and_raises_the_mark(catalog: Catalog):
    epoch = register(catalog)
    for _ in range(3):
        accept(catalog, epoch)
    before = catalog.nodes()[0].heartbeat_us
    assert catalog.heartbeat(epoch, Seq(2)).head == 3
    # A mark never goes back.
    assert catalog.heartbeat(epoch, Seq(1)).head == 3
    assert catalog.nodes()[0].low_water == 2
    assert catalog.nodes()[0].heartbeat_us > before


def test_a_heartbeat_tells_how_fast_statements_are(catalog: Catalog):
    epoch = register(catalog)
    assert catalog.nodes()[0].pace == Pace()
    catalog.heartbeat(epoch, Seq(0), Seq(0), "[]", Pace(1_500, 700))
    assert catalog.nodes()[0].pace == Pace(1_500, 700)


def test_silent_nodes_expire(catalog: Catalog):
    silent, alive = catalog.register_node("silent", 0), register(catalog)
    assert catalog.expire_nodes() == (silent,)
    assert catalog.expire_nodes() == ()
    assert [node.live for node in catalog.nodes()] == [False, True]
    with pytest.raises(errors.StaleNode):
        catalog.heartbeat(silent, Seq(0))
    catalog.heartbeat(alive, Seq(0))


def test_an_ended_epoch_stays_ended(catalog: Catalog):
    epoch = register(catalog)
    catalog.end_node(epoch)
    for use in (
        lambda: catalog.heartbeat(epoch, Seq(0)),
        lambda: catalog.reserve_segments(epoch, 1),
        lambda: catalog.claim(epoch, "gc"),
        lambda: catalog.collect(epoch, 0),
    ):
        with pytest.raises(errors.StaleNode):
            use()
    assert register(catalog) > epoch


def test_write_locks_are_exclusive_and_end_with_the_epoch(catalog: Catalog):
    one, two = register(catalog), register(catalog)
    assert catalog.claim(one, "gc")
    assert catalog.claim(one, "gc")
    assert not catalog.claim(two, "gc")
    assert catalog.claim(two, "compaction 1")
    catalog.release(two, "gc")
    assert not catalog.claim(two, "gc")
    catalog.release(one, "gc")
    assert catalog.claim(two, "gc")
    catalog.end_node(two)
    assert catalog.claim(one, "gc")


def test_rules_are_agreed_on_by_all_live_nodes(catalog: Catalog):
    older = catalog.register_node("older", LONG_MS, release=1)
    catalog.register_node("newer", LONG_MS, release=3)
    assert [node.release for node in catalog.nodes()] == [1, 3]
    assert catalog.agree_release(3) == 1
    catalog.end_node(older)
    assert catalog.agree_release(2) == 2
    # A node that knows less than has been agreed on does not come back.
    with pytest.raises(errors.ReleaseTooOld) as caught:
        catalog.register_node("older", LONG_MS, release=1)
    assert caught.value.sqlstate == "55000"
    catalog.register_node("between", LONG_MS, release=2)
    assert catalog.agree_release(3) == 2
    # What is agreed on never goes back.
    assert catalog.agree_release(1) == 2
