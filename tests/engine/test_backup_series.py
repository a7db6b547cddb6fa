"""A series of backups, and what of it can be restored when parts of it, or the database, are destroyed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seachange import errors
from seachange.cli.main import main
from seachange.engine.database.backup_series import add_backup, find_backup
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.runtime.location import SEGMENTS, find_location

ROWS = 20_000


class Shop:
    """A database with a series of backups. `states` has what each backup must give back, by its sequence."""

    def __init__(self, folder: Path) -> None:
        self.data, self.series, self.folder = folder / "data", folder / "series", folder
        self.names: list[str] = []
        self.sums: list[int] = []
        self.added: list[int] = []
        self.node = open_node(self.data)
        self.session = Session(self.node)
        self.session.execute("create table t (id int primary key, n int)")

    def add(self, number: int) -> None:
        first = number * ROWS
        self.session.execute(f"insert into t select x, {number} from generate_series({first}, {first + ROWS - 1}) s(x)")
        self.session.execute("insert into t values ($1, -1)", [-number - 1])

    def back_up(self, keep: int | None = None) -> None:
        made = add_backup(find_location(str(self.data), None), None, self.series, keep)
        self.names.append(made.name)
        self.added.append(made.new_files)
        self.sums.append(self.total(self.session))

    @staticmethod
    def total(session: Session) -> int:
        ((total,),) = session.execute("select sum(id::bigint * 3 + n) from t").rows
        return int(total)

    def restored(self, *options: str) -> int:
        """The sum of what is restored, which `check` finds consistent."""
        target = self.folder / f"restored-{len(list(self.folder.iterdir()))}"
        assert main(["restore", "--from", str(self.series), "--data", str(target), *options]) == 0
        assert main(["check", "--data", str(target)]) == 0
        node = open_node(target)
        try:
            return self.total(Session(node))
        finally:
            node.close()


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    for number in range(3):
        shop.add(number)
        shop.back_up()
    yield shop
    shop.node.close()


def test_only_new_segments_are_copied_and_each_backup_can_be_restored(shop):
    first, *others = shop.added
    assert first > 0
    assert others == [first, first]
    shop.node.close()
    shutil.rmtree(shop.data)
    assert shop.restored() == shop.sums[-1]
    for name, total in zip(shop.names, shop.sums, strict=True):
        head = find_head(shop.series / name)
        assert shop.restored("--as-of", str(head)) == total


def find_head(folder: Path) -> int:
    return int(json.loads((folder / "manifest.json").read_text())["head"])


def test_a_point_in_time_finds_the_newest_backup_that_is_not_later(shop, capsys):
    assert find_backup(shop.series, "2999-01-01").folder.name == shop.names[-1]
    with pytest.raises(errors.BackupProblem, match="or before"):
        find_backup(shop.series, "2001-01-01 00:00")
    with pytest.raises(errors.InvalidParameterValue):
        find_backup(shop.series, "yesterday-ish")


def test_a_backup_cut_short_leaves_the_others_and_is_followed_by_a_whole_one(shop):
    shop.add(3)
    command = [sys.executable, "-m", "seachange.cli.main", "backup", "--data", str(shop.data), "--incremental"]
    environment = {**os.environ, "SEACHANGE_FAULT": "backup.copied:1"}
    done = subprocess.run([*command, "--to", str(shop.series)], env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert shop.restored() == shop.sums[-1]
    # As by a copy that had not been synced when the machine lost its power.
    (shop.series / SEGMENTS / ".part-00000009").write_bytes(b"half")
    shop.back_up()
    assert shop.restored() == shop.sums[-1]
    assert [path.name for path in sorted(shop.series.iterdir()) if path.is_dir()] == [*sorted(shop.names), SEGMENTS]


def test_a_damaged_file_fails_the_restore_and_the_next_backup_replaces_it(shop):
    newest = max((shop.series / SEGMENTS).iterdir(), key=lambda path: path.stat().st_size)
    for content in (newest.read_bytes()[:-7], None):
        if content is None:
            newest.unlink()
        else:
            newest.write_bytes(content)
        target = shop.folder / f"broken-{content is None}"
        assert main(["restore", "--from", str(shop.series), "--data", str(target)]) == 1
        shop.back_up()
        assert shop.restored() == shop.sums[-1]


def test_backups_without_their_folder_do_not_take_the_others_with_them(shop):
    shutil.rmtree(shop.series / shop.names[2])
    (shop.series / shop.names[1] / "manifest.json").unlink()
    assert shop.restored() == shop.sums[0]


def test_old_backups_go_with_the_files_that_only_they_have(shop):
    shop.session.execute("delete from t where id >= 0")
    shop.session.execute("vacuum full t")
    shop.node.collect_garbage(0)
    before = len(os.listdir(shop.series / SEGMENTS))
    shop.back_up(keep=2)
    assert len(list(shop.series.glob("*/manifest.json"))) == 2
    shop.back_up(keep=1)
    assert len(os.listdir(shop.series / SEGMENTS)) < before
    assert shop.restored() == shop.sums[-1]


def test_a_series_is_of_one_database_and_of_nothing_else(shop, tmp_path):
    other = open_node(tmp_path / "other")
    other.close()
    with pytest.raises(errors.BackupProblem, match="another database"):
        add_backup(find_location(str(tmp_path / "other"), None), None, shop.series)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(errors.DataFolderProblem):
        add_backup(find_location(str(shop.data), None), None, tmp_path / "full")
    assert main(["restore", "--from", str(tmp_path / "full"), "--data", str(tmp_path / "x"), "--as-of", "1"]) == 1
