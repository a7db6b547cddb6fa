"""What only the SQLite catalog has."""

import errno
import sqlite3
from pathlib import Path

import pytest

from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.catalog.sqlite import SqliteCatalog, connections
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.faults import FAULTS
from tests.catalog.builders import accept, batch, register, request, submit


class HandClock:
    """Advances on request."""

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
    monkeypatch.setattr(connections, "MOUNTINFO", table)
    with pytest.raises(errors.NetworkFileSystem):
        SqliteCatalog(path, SYSTEM_CLOCK)


def test_commits_are_durable_when_they_are_answered(path: Path):
    catalog = SqliteCatalog(path, SYSTEM_CLOCK)
    with catalog._writer as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    catalog.close()


@pytest.mark.parametrize(
    ("problem", "seen"),
    [
        (sqlite3.OperationalError("disk I/O error"), errors.InputOutputError),
        (OSError(errno.EIO, "input/output error"), errors.InputOutputError),
        (OSError(errno.ENOSPC, "no space left"), errors.DiskFull),
    ],
)
@pytest.mark.parametrize("point", ["commit.locked", "commit.written"])
def test_an_error_inside_the_lock_leaves_nothing_behind(path: Path, point: str, problem, seen):
    catalog = SqliteCatalog(path, SYSTEM_CLOCK)
    epoch = register(catalog)
    what = request(0, batches=(batch(),))

    def fail() -> None:
        raise problem

    FAULTS.arm(point, fail)
    try:
        with pytest.raises(seen):
            submit(catalog, epoch, what)
    finally:
        FAULTS.disarm()
    assert catalog.head() == 0
    assert catalog.outcome(what.commit_id) is None
    accept(catalog, epoch)
    catalog.close()


def test_room_in_the_write_ahead_log_is_no_content(path: Path):
    """Zeros behind the frames are neither read nor lost, also by a process that recovers the log."""
    catalog = SqliteCatalog(path, SYSTEM_CLOCK)
    epoch = register(catalog)
    accept(catalog, epoch, batches=(batch(),))
    log = path.with_name(f"{path.name}-wal")
    assert log.stat().st_size > 4_000_000
    assert log.read_bytes().rstrip(b"\0") != b""
    copied = path.with_name("copied")
    copied.write_bytes(path.read_bytes())
    copied.with_name("copied-wal").write_bytes(log.read_bytes())
    for _ in range(300):
        accept(catalog, epoch, batches=(batch(),))
    assert catalog.head() == 301
    catalog.close()
    recovered = SqliteCatalog(copied, SYSTEM_CLOCK)
    assert recovered.head() == 1
    recovered.close()


def test_a_path_survives_its_url(tmp_path: Path):
    folder = tmp_path / "odd %41?#name"
    folder.mkdir()
    catalog = open_catalog(None, folder, SYSTEM_CLOCK, SYSTEM_ENTROPY)
    accept(catalog, register(catalog))
    catalog.close()
    again = open_catalog(catalog.url, Path(), SYSTEM_CLOCK, SYSTEM_ENTROPY)
    assert again.head() == 1
    again.close()
