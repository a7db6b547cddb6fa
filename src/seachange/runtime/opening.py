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


# A file system that records what was made durable, so that a test can discard everything else.
#
# SIGKILL alone never loses the page cache. A process under test runs on `PowerCutFileSystem`, which records every
# fsync, rename and deletion; after its death `lose_unsynced` does to the folder what a power cut may do: content that
# was never fsynced is lost, so is a name whose folder was not fsynced after the rename, and a file that was deleted
# since the folder's last fsync is back.
class PowerCutFileSystem(LocalFileSystem):
    """`skip` names steps that are left out on purpose ("file", "folder"), to prove that the test can fail."""

    def __init__(self, folder: Path, journal: Path, skip: frozenset[str] = frozenset()) -> None:
        super().__init__(folder)
        self._skip = skip
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._deleted = _deleted_folder(journal)
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


def _deleted_folder(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}-deleted")


def lose_unsynced(folder: Path, journal: Path, before: frozenset[str]) -> list[str]:
    """Undoes what was not durable; `before` are the names that existed before. Returns the affected names."""
    contents: set[str] = set()
    pending: dict[str, str] = {}
    durable: set[str] = set()
    deleted: set[str] = set()
    for line in journal.read_text().splitlines() if journal.exists() else ():
        match json.loads(line):
            case ["synced", path]:
                contents.add(path)
            case ["renamed", source, target]:
                pending[target] = source
            case ["folder"]:
                durable |= {target for target, source in pending.items() if source in contents}
                pending = {target: source for target, source in pending.items() if target not in durable}
                deleted.clear()
            case ["deleted", name]:
                deleted.add(name)
            case unknown:
                raise ValueError(f"{journal} has {unknown!r}")
    hit = [name for name in sorted(os.listdir(folder)) if name not in before and str(folder / name) not in durable]
    for name in hit:
        if str(folder / name) in pending and pending[str(folder / name)] not in contents:
            # The name survived and the content did not: the worse of the two outcomes.
            (folder / name).write_bytes(b"")
        else:
            (folder / name).unlink()
    for name in deleted - set(os.listdir(folder)):
        os.link(_deleted_folder(journal) / name, folder / name)
    return hit
