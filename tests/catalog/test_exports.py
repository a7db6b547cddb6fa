"""Exported snapshots hold the floor until they expire."""

from dataclasses import replace

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.exports import ExportRecord
from seachange.model.ids import Epoch, Seq, TableId
from tests.catalog.builders import accept, register

FAR_US = 1 << 60


def export(held: int, table: int = 1, expires_us: int = FAR_US) -> ExportRecord:
    return ExportRecord(TableId(table), held, Seq(held), f"/lake/{held}.metadata.json", 0, expires_us)


def commits(catalog: Catalog, epoch: Epoch, count: int = 5) -> None:
    for _ in range(count):
        accept(catalog, epoch)
    catalog.heartbeat(epoch, catalog.head())


def test_an_export_holds_the_floor_until_it_is_forgotten(catalog: Catalog):
    epoch = register(catalog)
    commits(catalog, epoch)
    catalog.record_export(epoch, export(2))
    catalog.record_export(epoch, export(3, table=2))
    catalog.collect(epoch, 0)
    assert catalog.floor() == 2
    catalog.forget_exports(epoch, TableId(1), [2])
    catalog.collect(epoch, 0)
    assert catalog.floor() == 3
    assert catalog.exports() == (export(3, table=2),)


def test_an_expired_export_holds_nothing_but_stays_listed(catalog: Catalog):
    epoch = register(catalog)
    commits(catalog, epoch)
    catalog.record_export(epoch, export(2, expires_us=1))
    catalog.collect(epoch, 0)
    assert catalog.floor() == 5
    assert catalog.exports() == (export(2, expires_us=1),)


def test_the_export_of_a_snapshot_is_replaced(catalog: Catalog):
    epoch = register(catalog)
    commits(catalog, epoch)
    catalog.record_export(epoch, export(2))
    moved = replace(export(2), held=Seq(4))
    catalog.record_export(epoch, moved)
    assert catalog.exports() == (moved,)
    catalog.collect(epoch, 0)
    assert catalog.floor() == 4


def test_an_export_below_the_floor_is_refused(catalog: Catalog):
    epoch = register(catalog)
    commits(catalog, epoch)
    catalog.collect(epoch, 0)
    with pytest.raises(errors.SnapshotTooOld):
        catalog.record_export(epoch, export(2))
    assert catalog.exports() == ()


def test_an_ended_epoch_records_and_forgets_no_export(catalog: Catalog):
    epoch, other = register(catalog), register(catalog)
    commits(catalog, epoch)
    catalog.record_export(other, export(5))
    catalog.end_node(epoch)
    with pytest.raises(errors.StaleNode):
        catalog.record_export(epoch, export(5, table=2))
    with pytest.raises(errors.StaleNode):
        catalog.forget_exports(epoch, TableId(1), [5])
    assert catalog.exports() == (export(5),)


def test_the_secret_is_the_first_that_a_node_proposes(catalog: Catalog):
    assert [catalog.secret(each) for each in ("first", "second")] == ["first", "first"]
