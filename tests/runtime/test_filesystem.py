"""Files are created durably, and a power cut loses what was not durable."""

import errno
from pathlib import Path

import pytest

from seachange import errors
from seachange.runtime.filesystem import LocalFileSystem, named_errors
from seachange.runtime.opening import PowerCutFileSystem
from tests.support.power_cut import lose_unsynced


class Steps(LocalFileSystem):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.steps: list[str] = []

    def sync_file(self, path: str) -> None:
        self.steps.append("sync folder" if path == str(self.folder) else "sync file")
        super().sync_file(path)

    def rename(self, source: str, target: str) -> None:
        self.steps.append("rename")
        super().rename(source, target)


def write(files: LocalFileSystem, name: str, content: bytes = b"content") -> None:
    Path(files.temporary_path(name)).write_bytes(content)
    files.publish(name)


def test_a_file_is_synced_before_and_its_folder_after_the_rename(tmp_path: Path):
    files = Steps(tmp_path)
    write(files, "a")
    assert files.steps == ["sync file", "rename", "sync folder"]
    assert files.names() == ["a"]
    assert files.size("a") == 7


def test_what_can_be_made_again_is_only_renamed(tmp_path: Path):
    files = Steps(tmp_path)
    Path(files.temporary_path("a")).write_bytes(b"content")
    files.publish("a", durable=False)
    assert files.steps == ["rename"]
    assert files.names() == ["a"]


def test_what_is_missing_has_no_size_and_can_be_deleted(tmp_path: Path):
    files = LocalFileSystem(tmp_path)
    assert files.size("a") is None
    files.delete(["a"])
    write(files, "a")
    Path(files.temporary_path("a")).write_bytes(b"left behind")
    files.delete(["a"])
    assert files.names() == []


@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.ENOSPC, errors.DiskFull), (errno.EDQUOT, errors.DiskFull), (errno.EIO, errors.InputOutputError)],
)
def test_an_error_of_the_system_names_its_file(code: int, error: type[errors.Error]):
    with pytest.raises(error, match="the file"), named_errors("write", "the file"):
        raise OSError(code, "no")


def test_a_power_cut_spares_what_is_durable(tmp_path: Path):
    folder, journal = tmp_path / "segments", tmp_path / "journal"
    files = PowerCutFileSystem(folder, journal)
    write(files, "durable")
    Path(files.temporary_path("begun")).write_bytes(b"half")
    assert lose_unsynced(folder, journal, frozenset()) == [".tmp-begun"]
    assert files.names() == ["durable"]


@pytest.mark.parametrize(("skip", "left"), [("file", []), ("folder", [])])
def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path, skip: str, left: list[str]):
    folder, journal = tmp_path / "segments", tmp_path / "journal"
    before = PowerCutFileSystem(folder, journal)
    write(before, "old")
    files = PowerCutFileSystem(folder, journal, frozenset({skip}))
    write(files, "new")
    lose_unsynced(folder, journal, frozenset({"old"}))
    assert [name for name in files.names() if name != "old" and files.size(name)] == left
    assert files.size("old") == 7
