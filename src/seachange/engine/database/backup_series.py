"""A series of backups in one folder: a folder for each backup with its catalog and manifest, and one folder of segment
files for all of them.

**Invariant:** a backup of the series is complete when it has its manifest, and its files are in the folder by then. A
file is removed only when no manifest names it any more; manifests go first.
**Invariant:** all backups of a series are of one database: files of another may have the same names.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from seachange import errors
from seachange.engine.database.backup import PART_PREFIX, Manifest, SegmentPool, back_up, read_manifest
from seachange.engine.database.database_identity import MANIFEST, open_database
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.filesystem import named_errors, sync
from seachange.runtime.location import SEGMENTS, DataLocation
from seachange.runtime.permissions import create_data_folder, create_file
from seachange.sql.settings.setting_checks import parse_as_of

_MARK = "series.json"
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class AddedBackup:
    name: str
    manifest: Manifest
    new_files: int
    new_bytes: int


@dataclass(frozen=True, slots=True)
class FoundBackup:
    """`segments` is None for a backup that is no part of a series."""

    folder: Path
    segments: Path | None


def add_backup(source: DataLocation, catalog_url: str | None, series: Path, keep: int | None = None) -> AddedBackup:
    with _holding(series):
        earlier = _backups(series)
        _check_same_database(series, source, catalog_url, earlier)
        sizes = {name: size for _, manifest in earlier for name, size in manifest.files.items()}
        pool = SegmentPool(series / SEGMENTS, sizes)
        folder = series / _new_name(series)
        manifest = back_up(source, catalog_url, folder, pool)
        new = [size for name, size in manifest.files.items() if name not in sizes]
        if keep is not None:
            _prune(series, keep)
        return AddedBackup(folder.name, manifest, len(new), sum(new))


def find_backup(source: Path, as_of: str | None) -> FoundBackup:
    """The newest backup of a series that was taken at that time, or as of that sequence, or before; or the only one."""
    if not (source / _MARK).exists():
        if as_of is not None:
            raise errors.BackupProblem(path=source, detail="--as-of is for a series, which backup --incremental makes")
        return FoundBackup(source, None)
    found = [folder for folder, manifest in _backups(source) if _is_within(manifest, as_of)]
    if not found:
        detail = "the series has no complete backup" if as_of is None else f"no backup is of {as_of} or before"
        raise errors.BackupProblem(path=source, detail=detail)
    return FoundBackup(found[-1], source / SEGMENTS)


def _is_within(manifest: Manifest, as_of: str | None) -> bool:
    try:
        limit = parse_as_of(as_of) if as_of is not None else None
    except ValueError:
        detail = f'"{as_of}" is neither a point in time nor a sequence number'
        raise errors.InvalidParameterValue(detail=detail) from None
    match limit:
        case None:
            return True
        case dt.datetime():
            return manifest.taken_us <= limit.timestamp() * _US
        case _:
            return manifest.head <= limit


def _backups(series: Path) -> list[tuple[Path, Manifest]]:
    """The complete ones, oldest first."""
    folders = [path.parent for path in series.glob(f"*/{MANIFEST}")]
    found = [(folder, read_manifest(folder)) for folder in folders]
    return sorted(found, key=lambda pair: (pair[1].head, pair[1].taken_us))


def _check_same_database(
    series: Path, source: DataLocation, catalog_url: str | None, earlier: list[tuple[Path, Manifest]]
) -> None:
    for _, manifest in earlier[-1:]:
        identity = source_identity(source, catalog_url)
        if manifest.database != identity:
            raise errors.BackupProblem(path=series, detail="its backups are of another database: use another folder")


def source_identity(source: DataLocation, catalog_url: str | None) -> str | None:
    catalog, identity = open_database(catalog_url, source, creates=False)
    catalog.close()
    return identity


@contextmanager
def _holding(series: Path) -> Iterator[None]:
    """One backup of a series at a time. Marks a new or empty folder as one."""
    mark = series / _MARK
    with named_errors("create", str(series)):
        create_data_folder(series)
        if not mark.exists():
            if any(series.iterdir()):
                raise errors.DataFolderProblem(path=series, detail="it is neither empty nor a series of backups")
            create_file(mark)
            mark.write_text(json.dumps({"format": 1}), encoding="utf-8")
            sync(mark)
    with mark.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.BackupProblem(path=series, detail="another backup of the series is being made") from None
        _tidy(series)
        yield


def _tidy(series: Path) -> None:
    """Removes what a backup has left that was cut short."""
    for folder in series.iterdir():
        if folder.is_dir() and folder.name != SEGMENTS and not (folder / MANIFEST).exists():
            shutil.rmtree(folder)
    for part in (series / SEGMENTS).glob(f"{PART_PREFIX}*"):
        part.unlink()


def _new_name(series: Path) -> str:
    moment = dt.datetime.fromtimestamp(SYSTEM_CLOCK.wall_us() / _US, dt.UTC)
    name = f"{moment:%Y-%m-%dT%H%M%S}Z"
    taken = {path.name for path in series.iterdir()}
    return next(each for each in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)


def _prune(series: Path, keep: int) -> None:
    backups = _backups(series)
    for folder, _ in backups[:-keep]:
        (folder / MANIFEST).unlink()
        sync(folder)
        shutil.rmtree(folder)
    kept = {name for _, manifest in backups[-keep:] for name in manifest.files}
    for path in (series / SEGMENTS).iterdir():
        if path.name not in kept:
            with suppress(FileNotFoundError):
                path.unlink()
