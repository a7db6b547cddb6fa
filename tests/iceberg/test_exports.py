"""Exports over time: what is written, what is kept, and what is deleted."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.exports.table_exports import GRACE_US
from seachange.iceberg.export import referenced_names
from seachange.iceberg.manifests import SMALL_MANIFESTS_MAX
from seachange.iceberg.metadata import LOGGED_MAX
from seachange.runtime.faults import FAULTS
from tests.iceberg.reading import Lake, open_lake, read
from tests.support.workers import wait_until

DAY_US = 24 * 3_600 * 1_000_000
TABLE = "create table t (id bigint primary key, s text)"
MANY = "insert into t select i, 'x' || i from generate_series({0}, {0} + 5999) i"


class ShiftedClock:
    """The clock of the node, some time later."""

    def __init__(self, lake: Lake) -> None:
        self._clock = lake.node.parts.clock
        self.ahead_us = 0
        lake.node.parts.clock = self

    def wall_us(self) -> int:
        return self._clock.wall_us() + self.ahead_us

    def steady_us(self) -> int:
        return self._clock.steady_us()


def data_files(lake: Lake) -> list[str]:
    return [f.path for m in lake.export().manifests if m.record["content"] == 0 for f in m.files]


def test_nothing_is_written_while_nothing_changes(lake: Lake):
    lake.run(TABLE, MANY.format(1), "create table other (id int)")
    first, names = lake.export(), lake.names()
    assert lake.export() is first
    lake.run("insert into other values (1)")
    assert lake.export() is first
    assert lake.names() == names


def test_only_what_changed_is_written(lake: Lake):
    lake.run(TABLE, *(MANY.format(n * 10_000) for n in range(3)))
    first, names = lake.export(), lake.names()
    lake.run("delete from t where id = 7")
    second = lake.export()
    kinds = sorted(name.split("-")[-1] for name in lake.names() - names)
    # One vector, its manifest, the snapshot, the metadata; the manifest of the data files is the same.
    assert [kind.rstrip("0123456789").split(".")[-1] for kind in kinds] == ["puffin", "avro", "avro", "json"]
    assert {m.path for m in first.manifests} < {m.path for m in second.manifests}


def test_small_manifests_are_merged(lake: Lake):
    lake.run(TABLE)
    for number in range(SMALL_MANIFESTS_MAX + 3):
        lake.run(MANY.format(number * 10_000))
        exported = lake.export()
    assert len(exported.manifests) <= SMALL_MANIFESTS_MAX + 1
    lake.check()


def test_metadata_that_was_replaced_goes_before_its_snapshot(lake: Lake):
    """Each metadata file lists all snapshots: the sizes of those of a day would add up."""
    clock = ShiftedClock(lake)
    lake.run(TABLE)
    exported = []
    for number in range(LOGGED_MAX + 4):
        # The last one keeps those of the minute before it.
        clock.ahead_us += GRACE_US
        lake.run(f"insert into t values ({number}, 'x')")
        exported.append(lake.export())
    kept = [name for name in lake.names() if name.endswith("metadata.json")]
    assert len(kept) == LOGGED_MAX + 1
    assert not Path(exported[0].address).exists()
    assert len(exported[-1].metadata["snapshots"]) == LOGGED_MAX + 4
    # Every snapshot can still be read.
    assert read(exported[-1].address, exported[0].snapshot) == [{"id": "0", "s": "x"}]
    lake.check()


def test_a_new_process_continues_from_the_files(tmp_path: Path):
    with open_lake(tmp_path / "data") as lake:
        lake.run(TABLE, MANY.format(1), "delete from t where id < 5")
        first = lake.export()
    with open_lake(tmp_path / "data") as lake:
        assert lake.export().address == first.address
        lake.run("delete from t where id < 10")
        second = lake.check()
    assert {m.path for m in first.manifests} & {m.path for m in second.manifests}
    assert [s["snapshot-id"] for s in second.metadata["snapshots"]] == [first.snapshot, second.snapshot]
    assert read(second.address, first.snapshot)


def test_a_moved_folder_is_exported_from_the_beginning(tmp_path: Path):
    with open_lake(tmp_path / "data") as lake:
        lake.run(TABLE, MANY.format(1))
        lake.export()
    os.rename(tmp_path / "data", tmp_path / "moved")
    with open_lake(tmp_path / "moved") as lake:
        exported = lake.check()
        assert str(tmp_path / "moved") in exported.metadata["location"]
        assert not any(str(tmp_path / "data") in path for path in data_files(lake))


def test_a_database_without_its_exports_is_exported_from_the_beginning(tmp_path: Path):
    """As after it was restored from a backup."""
    with open_lake(tmp_path / "data") as lake:
        lake.run(TABLE, MANY.format(1))
        lake.export()
    shutil.rmtree(lake.folder)
    with open_lake(tmp_path / "data") as lake:
        lake.check()


def test_garbage_collection_keeps_the_files_of_exported_snapshots(lake: Lake):
    lake.run(TABLE, MANY.format(1))
    exported, rows = lake.export(), lake.sql()
    lake.run("delete from t where id % 2 = 0", "vacuum full t")
    lake.node.collect_garbage(0)
    assert read(exported.address) == rows
    lake.run("drop table t")
    lake.node.collect_garbage(0)
    assert read(exported.address) == rows


def test_expired_snapshots_and_their_files_go(lake: Lake):
    clock = ShiftedClock(lake)
    lake.run(TABLE, MANY.format(1), "insert into t values (20000, 'inline')")
    old = lake.export()
    (segment,) = [path for path in data_files(lake) if "/segments/" in path]
    lake.run("delete from t where id % 2 = 0", "vacuum full t")
    clock.ahead_us = DAY_US + GRACE_US + 1
    new = lake.check()
    assert [s["snapshot-id"] for s in new.metadata["snapshots"]] == [new.snapshot]
    assert [r.snapshot for r in lake.node.parts.catalog.exports()] == [new.snapshot]
    assert not Path(old.metadata["snapshots"][-1]["manifest-list"]).exists()
    lake.node.collect_garbage(0)
    assert not Path(segment).exists()
    lake.check()


def test_readers_of_replaced_metadata_can_finish(lake: Lake):
    """A snapshot that is listed no more is kept for a minute, also if the metadata that was made with it is gone."""
    clock = ShiftedClock(lake)
    lake.run(TABLE)
    exported = []
    for number in range(LOGGED_MAX + 4):
        clock.ahead_us += 2 * GRACE_US
        lake.run(f"insert into t values ({number}, 'x')")
        exported.append(lake.export())
    first, second = exported[:2]
    (record,) = (r for r in lake.node.parts.catalog.exports() if r.snapshot == second.snapshot)
    assert not Path(record.metadata).exists()
    clock.ahead_us += record.expires_us - GRACE_US // 2 - lake.node.parts.clock.wall_us()
    for number in range(2):
        lake.run(f"insert into t values ({1_000 + number}, 'y')")
        assert not {first.snapshot, second.snapshot} & lake.export().snapshots
        assert len(read(exported[-1].address, second.snapshot)) == 2
    assert not Path(first.metadata["snapshots"][-1]["manifest-list"]).exists()
    clock.ahead_us += GRACE_US
    lake.run("insert into t values (2000, 'z')")
    lake.check()
    assert not Path(second.metadata["snapshots"][-1]["manifest-list"]).exists()


def test_the_current_snapshot_of_an_unchanged_table_is_renewed(lake: Lake):
    clock = ShiftedClock(lake)
    lake.run(TABLE, MANY.format(1))
    first = lake.export()
    (before,) = lake.node.parts.catalog.exports()
    clock.ahead_us = DAY_US
    assert lake.export().snapshot == first.snapshot
    (after,) = lake.node.parts.catalog.exports()
    assert after.expires_us > before.expires_us


def test_the_files_of_a_dropped_table_go_when_they_have_expired(lake: Lake):
    clock = ShiftedClock(lake)
    lake.run(TABLE, "insert into t values (1, 'inline')")
    lake.export()
    folder = lake.folder / str(lake.table().id)
    lake.run("drop table t")
    lake.node.exports.forget_expired()
    assert any(folder.iterdir())
    clock.ahead_us = DAY_US + GRACE_US + 1
    lake.node.exports.forget_expired()
    assert not any(folder.iterdir())
    assert lake.node.parts.catalog.exports() == ()


def test_exports_that_cannot_be_deleted_hold_back_no_garbage(tmp_path: Path):
    node = open_node(tmp_path / "data", retention_us=0)
    node.threads["maintenance"].stop()
    with closing(node):
        lake = Lake(node)
        clock = ShiftedClock(lake)
        lake.run("create table gone (id bigint primary key, s text)", MANY.format(1).replace("into t", "into gone"))
        lake.run("drop table gone", TABLE, "insert into t values (1, 'inline')")
        lake.export()
        folder = lake.folder / str(lake.table().id)
        lake.run("drop table t")
        clock.ahead_us = DAY_US + GRACE_US + 1
        # A name that cannot be deleted as a file is.
        for path in folder.iterdir():
            path.unlink()
            path.mkdir()
        assert node.parts.files.names()

        def is_collected() -> bool:
            with pytest.raises(errors.InputOutputError):
                node.maintenance.collect(node.epoch)
            return not node.parts.files.names()

        wait_until(is_collected, "the file of a table that was dropped before the export")
        lake.session.close()


def test_files_of_strangers_are_swept(tmp_path: Path):
    with open_lake(tmp_path / "data") as lake:
        lake.run(TABLE, MANY.format(1))
        lake.export()
        folder = lake.folder / str(lake.table().id)
    (folder / "stranger.avro").write_text("not ours")
    with open_lake(tmp_path / "data") as lake:
        lake.run("insert into t values (20000, 'inline')")
        lake.check()
    assert not (folder / "stranger.avro").exists()


@pytest.mark.parametrize("point", ["segment.written", "export.written", "export.recorded"])
def test_an_export_that_is_interrupted_leaves_the_last_one(tmp_path: Path, point: str):
    def stop() -> None:
        raise errors.InputOutputError(action="write", file="it", detail="interrupted")

    with open_lake(tmp_path / "data") as lake:
        lake.run(TABLE, MANY.format(1), "insert into t values (20000, 'inline')")
        first, rows = lake.export(), lake.sql()
        lake.run("delete from t where id < 100")
        FAULTS.arm(point, stop)
        with pytest.raises(errors.InputOutputError):
            lake.export()
        FAULTS.disarm()
        assert read(first.address) == rows
        lake.check()
    with open_lake(tmp_path / "data") as lake:
        exported = lake.check()
        assert json.loads(Path(exported.address).read_text())["current-snapshot-id"] == exported.snapshot
        assert read(first.address) == rows


def test_nodes_continue_each_others_exports(tmp_path: Path):
    with open_lake(tmp_path / "data") as one, open_lake(tmp_path / "data") as two:
        one.run(TABLE, MANY.format(1))
        first = one.check()
        two.run("delete from t where id < 10")
        second = two.check()
        one.run("delete from t where id < 20")
        third = one.check()
    found = [s["snapshot-id"] for s in third.metadata["snapshots"]]
    assert found == [first.snapshot, second.snapshot, third.snapshot]


def test_a_node_that_lost_its_claim_deletes_no_file_of_another(tmp_path: Path):
    """It was stopped after it had recorded its export; the other node has made a newer one since."""
    with open_lake(tmp_path / "data") as one, open_lake(tmp_path / "data") as two:
        one.run(TABLE, MANY.format(1))

        def overtake() -> None:
            FAULTS.disarm()
            two.node.parts.catalog.end_node(one.node.epoch.epoch)
            two.run("delete from t where id < 10")
            two.check()

        FAULTS.arm("export.recorded", overtake)
        one.export()
        two.check()


def test_expired_files_are_not_deleted_below_a_new_export(tmp_path: Path):
    """A node was stopped while it deleted the files of expired exports; the other exports the table again."""
    with open_lake(tmp_path / "data") as one, open_lake(tmp_path / "data") as two:
        one.run(TABLE, MANY.format(1), "insert into t values (20000, 'inline')")
        one.export()
        for lake in (one, two):
            ShiftedClock(lake).ahead_us = DAY_US + GRACE_US + 1

        def overtake() -> None:
            FAULTS.disarm()
            two.node.parts.catalog.end_node(one.node.epoch.epoch)
            two.check()

        FAULTS.arm("export.forgotten", overtake)
        one.node.exports.forget_expired()
        two.check()
        assert len(two.node.parts.catalog.exports()) == 1


def test_another_format_leaves_the_exported_snapshots(lake: Lake):
    clock = ShiftedClock(lake)
    lake.run(TABLE, MANY.format(1))
    old, rows = lake.export(), lake.sql()
    lake.run("alter table t set (seachange.iceberg_format = 2)", "delete from t where id < 10", "vacuum full t")
    assert lake.check().metadata["format-version"] == 2
    lake.node.collect_garbage(0)
    assert read(old.address) == rows
    clock.ahead_us = DAY_US + GRACE_US + 1
    lake.run("delete from t where id < 20")
    lake.check()
    assert not Path(old.address).exists()


def test_exports_are_recorded_in_postgresql(tmp_path: Path, postgres_catalog_url: str):
    with open_lake(tmp_path / "data", postgres_catalog_url) as lake:
        lake.run(TABLE, MANY.format(1), "insert into t values (20000, 'inline')")
        first, rows = lake.check(), lake.sql()
        lake.run("delete from t where id % 2 = 0", "vacuum full t")
        lake.check()
        lake.node.collect_garbage(0)
        assert read(first.address) == rows
        assert lake.node.parts.catalog.exports()[0].snapshot == first.snapshot


class HurriedClock(ShiftedClock):
    """A wait has taken too long when the node looks at the clock for the second time."""

    hurry_us = 0

    def steady_us(self) -> int:
        self.hurry_us += 20_000_000
        return super().steady_us() + self.hurry_us


KILLED = """
import sys
from pathlib import Path
from seachange.engine.database.opening import open_node
node = open_node(Path(sys.argv[1]), expiry_ms=3_600_000)
node.exports.export(node.epoch.schemas.newest.within().by_name["public", "t"].id)
"""


@pytest.mark.parametrize("point", ["segment.renamed", "export.written", "export.recorded"])
def test_a_node_killed_during_an_export_leaves_the_last_one(tmp_path: Path, point: str):
    data = tmp_path / "data"
    with open_lake(data) as lake:
        lake.run(TABLE, MANY.format(1))
        first, rows = lake.check(), lake.sql()
        lake.run("delete from t where id < 100", "insert into t values (20000, 'inline')")
    environment = {**os.environ, "SEACHANGE_FAULT": point}
    killed = subprocess.run([sys.executable, "-c", KILLED, data], env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert read(first.address) == rows
    with open_lake(data) as lake:
        # The expiry of the killed node is not waited for.
        HurriedClock(lake)
        exported = lake.check()
        assert read(first.address) == rows
        # What the killed process has written, and nothing refers to, is gone.
        known = referenced_names(lake.node.exports.folder(lake.table().id), exported, {})
        assert lake.names() == known
