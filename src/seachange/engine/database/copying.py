"""Copies a database to another folder or object store while it is in use, and moves it there.

Files are copied while nodes work; then one step in the catalog replaces the id of the database by that of the copy, and
ends all nodes, if the copy has all files that the catalog refers to then. Nodes over the old files get DatabaseMoved.

**Invariant:** no commit refers to a file that the copy lacks: the files of commits after the last look are counted in
the step that moves the database, and commits of older epochs are rejected after it.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.context.settings_file import FILE_NAME as SETTINGS_FILE
from seachange.engine.database.backup import holding_garbage
from seachange.engine.database.database_identity import open_database
from seachange.engine.database.opening import check_database_exists
from seachange.model.ids import Epoch, SegmentId
from seachange.model.segments import AttachedFile
from seachange.runtime.checksum import checksum_of
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import FileSystem, named_errors
from seachange.runtime.identity import IdentityPlace
from seachange.runtime.location import DataLocation
from seachange.runtime.opening import open_files, open_identity
from seachange.runtime.permissions import copy_file, create_data_folder
from seachange.storage.segment_footer import segment_name

# Each round copies the files of the commits during the round before.
_ROUNDS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Moved:
    files: int
    bytes: int


def move_database(source: DataLocation, catalog_url: str | None, target: DataLocation) -> Moved:
    """The catalog stays where it is. The old files are left alone."""
    check_database_exists(source)
    place = open_identity(target.segments)
    if source.segments == target.segments or place.read() is not None:
        raise errors.DataFolderProblem(path=target, detail="it contains a database")
    catalog, _ = open_database(catalog_url, source, creates=False)
    try:
        with (
            holding_garbage(catalog) as epoch,
            closing(open_files(source.segments)) as old,
            closing(_opened(target)) as new,
        ):
            identity = place.propose(SYSTEM_ENTROPY)
            copied = _Copy(old, new, place).run(catalog, epoch, identity)
            reach("copy.moved")
            place.confirm(identity)
    finally:
        catalog.close()
    _copy_settings(source.local, target.local)
    return copied


def _opened(target: DataLocation) -> FileSystem:
    with named_errors("create", str(target.local)):
        create_data_folder(target.local)
    return open_files(target.segments)


def _copy_settings(source: Path, target: Path) -> None:
    with named_errors("write", str(target)):
        if (source / SETTINGS_FILE).exists() and not (target / SETTINGS_FILE).exists():
            copy_file(source / SETTINGS_FILE, target / SETTINGS_FILE)


class _Copy:
    def __init__(self, old: FileSystem, new: FileSystem, place: IdentityPlace) -> None:
        self._old = old
        self._new = new
        self._place = place
        self._copied: dict[SegmentId, int] = {}

    def run(self, catalog: Catalog, epoch: Epoch, identity: str) -> Moved:
        with tempfile.TemporaryDirectory(prefix="seachange-copy-") as folder:
            for _ in range(_ROUNDS_MAX):
                for file in catalog.known_files().attached:
                    if file.id not in self._copied:
                        self._copy(file, Path(folder) / segment_name(file.id))
                reach("copy.copied")
                if catalog.move(epoch, identity, len(self._copied)):
                    return Moved(len(self._copied), sum(self._copied.values()))
        raise errors.LockNotAvailable(detail="new files were attached faster than they could be copied")

    def _copy(self, file: AttachedFile, path: Path) -> None:
        name = segment_name(file.id)
        # A copy that was interrupted is resumed.
        if self._place.size(name) != file.size_bytes or self._place.checksum(name) != file.checksum:
            self._old.copy_out(name, path)
            with pa.OSFile(str(path)) as written:
                if checksum_of(written) != file.checksum:
                    raise errors.SegmentDamaged(file=name, detail="its checksum differs from the recorded one")
            self._new.copy_in(path, name)
            path.unlink()
        self._copied[file.id] = file.size_bytes
