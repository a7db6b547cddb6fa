"""Backups: a copy of the catalog as of one sequence, and of the files that it refers to, while the database is in use.

**Invariant:** no garbage is collected during a backup, so every file that the copied catalog refers to exists until it
has been copied. A backup whose epoch ends loses that guarantee: it fails at the end and leaves no manifest.

**Invariant:** a folder with a manifest is a complete backup: the manifest is written last, after everything else is on
disk.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.catalog.open import catalog_kind, restore_catalog
from seachange.catalog.port import FORMAT, Catalog
from seachange.engine.context.settings_file import FILE_NAME as SETTINGS_FILE
from seachange.engine.database.database_identity import MANIFEST, open_database
from seachange.engine.database.opening import check_database_exists
from seachange.engine.replica.mark_holders import encode_holders
from seachange.engine.replica.registry import Marks
from seachange.model.ids import Epoch
from seachange.pipeline.compaction.gc import GC_CLAIM
from seachange.planner.rules.release import CURRENT
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import TEMPORARY_PREFIX, FileSystem, named_errors, sync
from seachange.runtime.location import SEGMENTS, DataLocation, as_location
from seachange.runtime.opening import open_files, open_identity
from seachange.runtime.permissions import copy_file, create_data_folder, create_file, create_folder

# The format of release 0.1.0, the first with backups.
OLDEST_FORMAT = 7
_NAME = "backup"
# Of a file that is being copied to a backup.
PART_PREFIX = ".part-"
_EXPIRY_MS = 30_000
_ALL_REQUESTS = (1 << 63) - 1
_BEAT_SECONDS = 5.0
# How long to wait for a running garbage collection, and how often to poll it.
_WAIT_SECONDS, _LOOK_SECONDS = 60.0, 0.1


@dataclass(frozen=True, slots=True)
class Manifest:
    """`files` are the names and sizes of the segment files; `database` is the id of the source database, which older
    backups do not have."""

    format: int
    catalog: str
    head: int
    files: dict[str, int]
    database: str | None = None
    # When the catalog was copied, in microseconds since 1970; older backups do not have it.
    taken_us: int = 0

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True, slots=True)
class SegmentPool:
    """A folder with the files of one backup or several, and their sizes as earlier backups have noted them."""

    folder: Path
    sizes: Mapping[str, int]


def back_up(
    source: Path | DataLocation, catalog_url: str | None, target: Path, pool: SegmentPool | None = None
) -> Manifest:
    """Writes to a folder that does not exist yet, or is empty. Files that the pool has already are not copied again."""
    pool = pool or SegmentPool(target / SEGMENTS, {})
    location = as_location(source)
    data = location.local
    check_database_exists(location)
    _make_empty(target)
    catalog, identity = open_database(catalog_url, location, creates=False)
    try:
        with holding_garbage(catalog) as epoch:
            taken_us, head = SYSTEM_CLOCK.wall_us(), catalog.copy_to(target)
            files = _copy_out(location, pool)
            # Raises if the epoch has ended: then garbage may have been collected.
            catalog.claim(epoch, GC_CLAIM)
    finally:
        catalog.close()
    manifest = Manifest(FORMAT, catalog_kind(catalog_url), head, files, identity, taken_us)
    with named_errors("write", str(target)):
        if (data / SETTINGS_FILE).exists():
            copy_file(data / SETTINGS_FILE, target / SETTINGS_FILE)
        for path in (*target.rglob("*"), target, pool.folder):
            sync(path)
        create_file(target / MANIFEST)
        (target / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
        sync(target / MANIFEST)
        sync(target)
    return manifest


def restore(
    source: Path, target: Path | DataLocation, catalog_url: str | None, segments: Path | None = None
) -> Manifest:
    """Creates a new database, with an id of its own, from a backup. It can be opened once all of it is on disk."""
    manifest = read_manifest(source)
    kind = catalog_kind(catalog_url)
    if kind != manifest.catalog:
        raise errors.BackupProblem(path=source, detail=f"its catalog is {manifest.catalog}, not {kind}")
    location = as_location(target)
    data, place = location.local, open_identity(location.segments)
    if location.store is None:
        _make_empty(data)
    else:
        create_data_folder(data)
        if place.read() is not None or place.segment_files():
            raise errors.DataFolderProblem(path=location, detail="it is not empty")
    identity = place.propose(SYSTEM_ENTROPY)
    copied = _copy_in(segments or source / SEGMENTS, manifest.files, location)
    if copied != manifest.files:
        wrong = sorted(name for name, size in manifest.files.items() if copied.get(name) != size)
        raise errors.BackupProblem(
            path=source, detail=f"{len(wrong)} files are missing or incomplete, {wrong[:1]} first"
        )
    with named_errors("write", str(data)):
        if (source / SETTINGS_FILE).exists():
            copy_file(source / SETTINGS_FILE, data / SETTINGS_FILE)
    with named_errors("write", str(data)):
        for path in (*data.rglob("*"), data):
            sync(path)
    restore_catalog(catalog_url, data, source, SYSTEM_CLOCK, identity)
    place.confirm(identity)
    return manifest


def read_manifest(source: Path) -> Manifest:
    try:
        manifest = Manifest(**json.loads((source / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise errors.BackupProblem(
            path=source, detail=f"there is no {MANIFEST}: not a backup, or an incomplete one"
        ) from None
    except (OSError, ValueError, TypeError) as problem:
        raise errors.BackupProblem(path=source, detail=f"{MANIFEST} cannot be read: {problem}") from problem
    if not OLDEST_FORMAT <= manifest.format <= FORMAT:
        detail = f"its catalog has format {manifest.format}; this program restores {OLDEST_FORMAT} to {FORMAT}"
        raise errors.BackupProblem(path=source, detail=detail)
    return manifest


@contextmanager
def holding_garbage(catalog: Catalog) -> Iterator[Epoch]:
    """Registers a node of its own that holds the garbage collection claim, so that no file is deleted."""
    epoch = catalog.register_node(_NAME, _EXPIRY_MS, CURRENT.number)
    # It writes to no table, so no table lock waits for it.
    catalog.answer_requests(epoch, _ALL_REQUESTS)
    _publish(catalog, epoch)
    stopped = threading.Event()
    beating = threading.Thread(target=_beat, args=(catalog, epoch, stopped), name="seachange-backup", daemon=True)
    beating.start()
    try:
        waited = 0.0
        while not catalog.claim(epoch, GC_CLAIM):
            if waited >= _WAIT_SECONDS:
                raise errors.LockNotAvailable(
                    detail="another node or backup holds the garbage collection claim of the database"
                )
            stopped.wait(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
            # The holder may have died.
            end_dead_nodes(catalog)
        yield epoch
    finally:
        stopped.set()
        beating.join()
        with suppress(errors.Error):
            catalog.end_node(epoch)


def _beat(catalog: Catalog, epoch: Epoch, stopped: threading.Event) -> None:
    """Heartbeats with marks at the head, so that no schema change waits for a backup."""
    while not stopped.wait(_BEAT_SECONDS):
        with suppress(errors.Error):
            _publish(catalog, epoch)


def _publish(catalog: Catalog, epoch: Epoch) -> None:
    """With the name of this process: if it is killed, nodes of this machine do not wait until its epoch expires."""
    head = catalog.head()
    catalog.heartbeat(epoch, head, holders=encode_holders(Marks(head, head, (), head)))


def _copy_out(location: DataLocation, pool: SegmentPool) -> dict[str, int]:
    """Segment files are immutable, so they can be copied at any time, and one that was copied earlier is still the
    same. Temporary files are not part of the database yet, and the id is not copied: the copy is another database."""
    with named_errors("create", str(pool.folder)):
        create_folder(pool.folder)
    with closing(open_files(location.segments)) as files:
        names = [name for name in files.names() if not name.startswith(TEMPORARY_PREFIX)]
        return {name: _copy_file_out(files, name, pool) for name in names}


def _copy_file_out(files: FileSystem, name: str, pool: SegmentPool) -> int:
    """Under a name of its own until it is whole and on disk: a backup may be cut short at any time."""
    path, part = pool.folder / name, pool.folder / f"{PART_PREFIX}{name}"
    known = pool.sizes.get(name)
    if known is not None and path.exists() and path.stat().st_size == known:
        return known
    part.unlink(missing_ok=True)
    size = files.copy_out(name, part)
    with named_errors("write", str(path)):
        sync(part)
        part.rename(path)
    reach("backup.copied")
    return size


def _copy_in(source: Path, names: Iterable[str], location: DataLocation) -> dict[str, int]:
    """The files that there are, with their sizes."""
    with closing(open_files(location.segments)) as files:
        return {name: files.copy_in(source / name, name) for name in names if (source / name).is_file()}


def _make_empty(folder: Path) -> None:
    with named_errors("create", str(folder)):
        create_data_folder(folder)
        if any(folder.iterdir()):
            raise errors.DataFolderProblem(path=folder, detail="it is not empty")
