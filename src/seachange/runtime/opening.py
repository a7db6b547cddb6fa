"""The file system of a data folder: the real one, or one that records what was made durable, for crash tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from seachange.runtime.filesystem import FileSystem, LocalFileSystem


def open_files(folder: Path) -> FileSystem:
    """A local folder; under test, `SEACHANGE_POWER_CUT=JOURNAL[:SKIPPED_STEP]` selects one that can lose power."""
    power_cut = os.environ.get("SEACHANGE_POWER_CUT")
    if power_cut is None:
        return LocalFileSystem(folder)
    journal, _, skip = power_cut.partition(":")
    return PowerCutFileSystem(folder, Path(journal), frozenset(skip.split(",")) if skip else frozenset())


class PowerCutFileSystem(LocalFileSystem):
    """Records every fsync, rename and deletion: SIGKILL alone never loses the page cache, so a test of power cuts
    discards what was not made durable (tests/support/power_cut.py). `skip` names steps that are left out on purpose
    ("file", "folder"), to prove that the test can fail."""

    def __init__(self, folder: Path, journal: Path, skip: frozenset[str] = frozenset()) -> None:
        super().__init__(folder)
        self._skip = skip
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._deleted = deleted_folder(journal)
        self._deleted.mkdir(exist_ok=True)

    def sync_file(self, path: str) -> None:
        if path != str(self.folder) and "file" not in self._skip:
            super().sync_file(path)
            self._note("synced", path)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self._note("renamed", source, target)

    def delete(self, name: str) -> None:
        if os.path.exists(self.path(name)):
            os.link(self.path(name), self._deleted / name)
            self._note("deleted", name)
        super().delete(name)

    def sync_folder(self, path: str) -> None:
        if "folder" not in self._skip:
            LocalFileSystem.sync_file(self, path)
            self._note("folder")

    def _note(self, *what: str) -> None:
        os.write(self._journal, json.dumps(what).encode() + b"\n")


def deleted_folder(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}-deleted")
