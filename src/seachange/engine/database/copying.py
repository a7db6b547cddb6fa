"""Copies a database to another folder or object store while it is in use, and moves it there.

Files are copied while nodes work; then one step in the catalog replaces the id of the database by that of the copy, and
ends all nodes, if the copy has all files that the catalog refers to then. Nodes over the old files get DatabaseMoved.
A copy that was interrupted, at any point, is finished by the same call.

**Invariant:** no commit refers to a file that the copy lacks: the files of commits after the last look are counted in
the step that moves the database, and commits of older epochs are rejected after it.

**Invariant:** a place is that of one copy: it names the database that is copied there before it has a file of it, and
only a place that does so has files already.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.catalog.port import Catalog
from seachange.engine.context.settings_file import FILE_NAME as SETTINGS_FILE
from seachange.engine.database.backup import holding_garbage
from seachange.engine.database.database_identity import open_database
from seachange.engine.database.opening import check_database_exists
from seachange.model.ids import Epoch, SegmentId
from seachange.model.segments import AttachedFile
from seachange.runtime.checksum import checksum_of
from seachange.runtime.clock import SYSTEM_CLOCK
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
    if source.segments == target.segments:
        raise errors.DataFolderProblem(path=target, detail="it contains a database")
    place = open_identity(target.segments)
    moved = _finish(source, catalog_url, target, place)
    if moved is None:
        if place.read() is not None:
            raise errors.DataFolderProblem(path=target, detail="it contains a database")
        moved = _move(source, catalog_url, target, place)
    _copy_settings(source.local, target.local)
    return moved


def _finish(source: DataLocation, catalog_url: str | None, target: DataLocation, place: IdentityPlace) -> Moved | None:
    """What an earlier copy has moved that was interrupted after the step in the catalog; None if there was none."""
    if source.store is not None and catalog_url is None and not source.is_chosen:
        return None
    with closing(open_catalog(catalog_url, source.local, SYSTEM_CLOCK, SYSTEM_ENTROPY, creates=False)) as catalog:
        bound = catalog.identity()
        if bound is None or bound == open_identity(source.segments).read() or place.confirm(bound) != bound:
            return None
        _create_local(target)
        files = catalog.known_files().attached
        return Moved(len(files), sum(file.size_bytes for file in files))


def _move(source: DataLocation, catalog_url: str | None, target: DataLocation, place: IdentityPlace) -> Moved:
    catalog, identity = open_database(catalog_url, source, creates=False)
    with closing(catalog), holding_garbage(catalog) as epoch:
        is_resumed = _claim_place(place, identity, target)
        _create_local(target)
        with closing(open_files(source.segments)) as old, closing(open_files(target.segments)) as new:
            proposed = place.propose(SYSTEM_ENTROPY)
            copied = _Copy(old, new, place, is_resumed).run(catalog, epoch, proposed)
            reach("copy.moved")
            place.confirm(proposed)
    return copied


def _claim_place(place: IdentityPlace, identity: str, target: DataLocation) -> bool:
    """Whether a copy of this database has begun there before."""
    found = {*place.copied_databases()}
    if found == {identity}:
        return True
    if not found and not place.segment_files():
        place.note_copy(identity)
        reach("copy.noted")
        # Another copy may have begun at the same time.
        if {*place.copied_databases()} == {identity}:
            return False
        place.withdraw_copy(identity)
    raise errors.DataFolderProblem(path=target, detail="it has files of another database")


def _create_local(target: DataLocation) -> None:
    with named_errors("create", str(target.local)):
        create_data_folder(target.local)


def _copy_settings(source: Path, target: Path) -> None:
    with named_errors("write", str(target)):
        if (source / SETTINGS_FILE).exists() and not (target / SETTINGS_FILE).exists():
            copy_file(source / SETTINGS_FILE, target / SETTINGS_FILE)


class _Copy:
    def __init__(self, old: FileSystem, new: FileSystem, place: IdentityPlace, is_resumed: bool) -> None:
        self._old = old
        self._new = new
        self._place = place
        self._is_resumed = is_resumed
        self._copied: dict[SegmentId, int] = {}

    def run(self, catalog: Catalog, epoch: Epoch, identity: str) -> Moved:
        if self._is_resumed:
            # Files that the database has no more since a copy was interrupted.
            attached = {segment_name(file.id) for file in catalog.known_files().attached}
            strays = [name for name in self._place.segment_files() if name not in attached]
            for first in range(0, len(strays), self._new.deletions_at_once):
                self._new.delete(strays[first : first + self._new.deletions_at_once])
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
