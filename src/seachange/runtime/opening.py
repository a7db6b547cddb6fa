"""Opens the segments of a database: in a folder, in an object store, or, for crash tests, in a folder that records what
was made durable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from seachange import errors
from seachange.runtime.filesystem import FileSystem, LocalFileSystem
from seachange.runtime.identity import FolderIdentity, IdentityPlace
from seachange.runtime.location import CACHE, SEGMENTS, default_folder, hashed, is_url
from seachange.runtime.segment_cache import SegmentCache


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The cache of an object store's files; without a folder, the one of this machine for the store."""

    folder: str | None = None
    bytes_max: int = 10 << 30


def open_files(address: str | Path, cache: CacheOptions = CacheOptions()) -> FileSystem:  # noqa: B008 - a value
    """`address` is a folder or a URL. Under test, `SEACHANGE_POWER_CUT=JOURNAL[:SKIPPED_STEP]` selects a folder that
    can lose power."""
    if is_url(str(address)):
        return _open_store(str(address), cache)
    folder = Path(address)
    power_cut = os.environ.get("SEACHANGE_POWER_CUT")
    if power_cut is None:
        return LocalFileSystem(folder)
    journal, _, skip = power_cut.partition(":")
    return PowerCutFileSystem(folder, Path(journal), frozenset(skip.split(",")) if skip else frozenset())


def open_identity(address: str) -> IdentityPlace:
    if not is_url(address):
        return FolderIdentity(Path(address))
    place: IdentityPlace = _load("store_identity").StoreIdentity(_load("object_store").ObjectStore(address))
    return place


def ignores_conditions(url: str, identity: str) -> bool:
    """Whether the object store replaces an object that it was asked to create only if there is none."""
    place = _load("store_identity").StoreIdentity(_load("object_store").ObjectStore(url))
    return bool(place.ignores_conditions(identity))


def _open_store(url: str, cache: CacheOptions) -> FileSystem:
    parent = url.removesuffix(f"/{SEGMENTS}")
    folder = Path(cache.folder) if cache.folder is not None else default_folder(parent) / CACHE
    # One folder may be the cache of several stores.
    place = folder / hashed(url)
    store = _load("object_store").ObjectStore(url)
    files: FileSystem = _load("store_files").StoreFiles(store, SegmentCache(place, cache.bytes_max))
    return files


def _load(module: str) -> Any:
    """Imported only here: the library is optional."""
    try:
        return import_module(f"seachange.runtime.{module}")
    except ImportError as problem:
        if problem.name is None or not problem.name.startswith("obstore"):
            raise
        raise errors.StoreLibraryMissing() from problem


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

    def remove(self, name: str) -> None:
        if os.path.exists(self.path(name)):
            os.link(self.path(name), self._deleted / name)
            self._note("deleted", name)
        super().remove(name)

    def sync_folder(self, path: str) -> None:
        if "folder" not in self._skip:
            LocalFileSystem.sync_file(self, path)
            self._note("folder")

    def _note(self, *what: str) -> None:
        os.write(self._journal, json.dumps(what).encode() + b"\n")


def deleted_folder(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}-deleted")
