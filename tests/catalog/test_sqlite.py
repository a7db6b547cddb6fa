"""What only the SQLite catalog has."""

import sqlite3
from pathlib import Path

import pytest

from seachange import errors
from seachange.catalog import mounts
from seachange.catalog.sqlite import SqliteCatalog
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.faults import FAULTS
from tests.catalog.builders import accept, batch, register, request, submit


class HandClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_us = 1_000_000

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.sqlite"


def test_a_reboot_ends_every_epoch(path: Path):
    before = SqliteCatalog(path, SYSTEM_CLOCK, boot_id="one")
    epoch = register(before)
    before.close()
    same = SqliteCatalog(path, SYSTEM_CLOCK, boot_id="one")
    assert same.nodes()[0].live
    same.close()
    after = SqliteCatalog(path, SYSTEM_CLOCK, boot_id="two")
    with pytest.raises(errors.StaleNode):
        after.heartbeat(epoch, after.head())
    after.close()


def test_expiry_is_counted_from_the_last_heartbeat(path: Path):
    clock = HandClock()
    catalog = SqliteCatalog(path, clock)
    epoch = catalog.register_node("node", 10)
    clock.now_us += 10_000
    assert catalog.expire_nodes() == ()
    catalog.heartbeat(epoch, catalog.head())
    clock.now_us += 10_000
    assert catalog.expire_nodes() == ()
    clock.now_us += 1
    assert catalog.expire_nodes() == (epoch,)
    catalog.close()


def test_timestamps_rise_though_the_clock_stands_or_goes_back(path: Path):
    clock = HandClock()
    catalog = SqliteCatalog(path, clock)
    epoch = register(catalog)
    first = accept(catalog, epoch).timestamp_us
    clock.now_us -= 500_000
    assert accept(catalog, epoch).timestamp_us == first + 1
    catalog.close()


def test_a_network_file_system_is_refused(path: Path, tmp_path: Path, monkeypatch):
    table = tmp_path / "mountinfo"
    table.write_text("1 0 0:1 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(mounts, "MOUNTINFO", table)
    with pytest.raises(errors.NetworkFileSystem):
        SqliteCatalog(path, SYSTEM_CLOCK)


def test_commits_are_durable_when_they_are_answered(path: Path):
    catalog = SqliteCatalog(path, SYSTEM_CLOCK)
    with catalog._writer as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    catalog.close()


def test_an_error_inside_the_lock_leaves_nothing_behind(path: Path):
    catalog = SqliteCatalog(path, SYSTEM_CLOCK)
    epoch = register(catalog)
    what = request(0, batches=(batch(),))

    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    FAULTS.arm("commit.written", fail)
    try:
        with pytest.raises(errors.InputOutputError):
            submit(catalog, epoch, what)
    finally:
        FAULTS.disarm()
    assert catalog.head() == 0
    assert catalog.outcome(what.commit_id) is None
    accept(catalog, epoch)
    catalog.close()
