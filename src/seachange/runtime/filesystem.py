"""The file system port: the warehouse, in a folder (here) or in an object store (`store_files.py`).

A file is created in four steps: written under a temporary name, fsynced, renamed, the folder fsynced. Only then may a
commit refer to it. Files that can be recreated, and are verified before use, need not be synced.

**Invariant:** publishing never replaces a file: a name that exists is an error (58P02).

**Invariant:** a name without the temporary prefix is a complete file as soon as `publish` has returned, durable unless
the caller said otherwise, and its bytes never change afterwards. Every OSError is converted to an error that names the
file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from seachange import errors
from seachange.runtime.faults import reach
from seachange.runtime.file_uses import FileUses
from seachange.runtime.permissions import copy_file, create_folder, file_mode
from seachange.runtime.ranged_file import RangedFile
from seachange.runtime.renaming import rename_new

TEMPORARY_PREFIX = ".tmp-"
# The file with the id of the database, and the prefix of proposed ids (see runtime/identity.py).
IDENTITY_NAME = "database.id"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the catalog has recorded it."""

    name: str
    size_bytes: int
    checksum: bytes


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """The cache of this machine (files, those that are pinned, their size) and its use by this process."""

    store: str
    folder: str
    bytes_max: int
    files: int
    pinned: int
    size_bytes: int
    hits: int
    misses: int
    downloaded_bytes: int
    uploaded_bytes: int
    evictions: int
    excerpt_bytes: int


class FileSystem(Protocol):
    """Names are relative to the warehouse and have no folders of their own."""

    @property
    def address(self) -> str:
        """The folder or the URL."""

    @property
    def uses(self) -> FileUses:
        """The readers of files. A path that was given out stays valid until the uses that are open then have ended."""

    @property
    def deletions_at_once(self) -> int:
        """How many files one deletion should remove."""

    def temporary_path(self, name: str) -> str:
        """The path to write the content of `name` to before it is published."""

    def publish(self, name: str, durable: bool = True) -> None:
        """Makes the temporary file the content of `name`; raises FileExists if there is a file of that name."""

    def discard(self, name: str) -> None:
        """Removes the temporary file of `name`, if there is one."""

    def fetch(self, files: Sequence[StoredFile]) -> list[str]:
        """The paths of the files on this machine. Their sizes are the recorded ones, and a file that had to be
        transferred has the recorded checksum; raises SegmentDamaged otherwise."""

    def refetch(self, file: StoredFile) -> bool:
        """Transfers the file again, since the one on this machine is damaged; False if there is no other."""

    def open_input(self, name: str) -> pa.NativeFile:
        """Opens a file that was fetched in the same use."""

    def ranges(self, file: StoredFile, wanted_bytes: int = 0) -> RangedFile | None:
        """A file that is read by parts without being fetched; None if it is on this machine, small, or read so much
        that it should be fetched: with what is wanted now, more than half of it."""

    def keep_excerpt(self, file: StoredFile, name: str) -> str:
        """Makes the temporary file of `name` an excerpt of the file: a copy with holes, which only this process has.
        Returns its path."""

    def finds_excerpt(self, name: str) -> bool:
        """Whether an excerpt is still there: then its path stays valid as that of a file that is fetched."""

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it is missing."""

    def copy_out(self, name: str, path: Path) -> int:
        """Copies a file to a path; returns its size."""

    def copy_in(self, path: Path, name: str) -> int:
        """Copies the file at the path, and makes it durable under the name; returns its size."""

    def size(self, name: str) -> int | None:
        """The file's size, None if it is missing."""

    def has(self, name: str) -> bool:
        """Whether the file exists, or has existed: names are not used again."""

    def delete(self, names: Sequence[str]) -> None:
        """Removes the files and their temporary files; a missing one is not an error."""

    def sync_deletions(self) -> None:
        """Makes deletions durable: afterwards no power cut restores a deleted file."""

    def names(self) -> list[str]:
        """All names but that of the database id."""

    def free_bytes(self) -> int:
        """The free space."""

    def keeps(self, name: str) -> bool:
        """Whether a file that was opened takes no more room than it does anyway."""

    def tidy(self) -> None:
        """Called from time to time: releases what no reader needs any more."""

    def facts(self) -> CacheFacts | None:
        """None if there is no cache."""

    def close(self) -> None: ...


def check_size(file: StoredFile, size: int | None) -> None:
    """Raises SegmentDamaged if it is not the recorded one; None is the size of a missing file."""
    if size is None:
        raise errors.SegmentDamaged(file=file.name, detail="it is missing")
    if size != file.size_bytes:
        state = "it is truncated" if size < file.size_bytes else "it is too long"
        raise errors.SegmentDamaged(file=file.name, detail=f"{state}: {size} bytes instead of {file.size_bytes}")


@contextmanager
def named_errors(action: str, file: str) -> Iterator[None]:
    """Converts an OSError to the client's error for it."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.DiskFull(file=file) from problem
        raise errors.InputOutputError(action=action, file=file, detail=problem.strerror or str(problem)) from problem


def sync(path: str | Path) -> None:
    """Syncs a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LocalFileSystem:
    """A folder of the local machine."""

    deletions_at_once = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uses = FileUses()
        with named_errors("create", str(folder)):
            create_folder(folder)
            self._file_mode = file_mode(folder)
        # Not memory-mapped: truncation of a mapped file would kill the process instead of raising an error.
        self._arrow = pafs.LocalFileSystem()

    @property
    def address(self) -> str:
        return str(self.folder)

    def temporary_path(self, name: str) -> str:
        return str(self.folder / f"{TEMPORARY_PREFIX}{name}")

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def publish(self, name: str, durable: bool = True) -> None:
        temporary, final = self.temporary_path(name), self.path(name)
        with named_errors("write", final):
            reach("segment.written")
            os.chmod(temporary, self._file_mode)
            if not durable:
                self._name(temporary, final)
                return
            self.sync_file(temporary)
            reach("segment.synced")
            self._name(temporary, final)
            reach("segment.renamed")
            self.sync_folder(str(self.folder))
            reach("segment.published")

    def _name(self, temporary: str, final: str) -> None:
        try:
            self.rename(temporary, final)
        except FileExistsError as problem:
            raise errors.FileExists(file=final) from problem

    def discard(self, name: str) -> None:
        with named_errors("delete", self.temporary_path(name)):
            Path(self.temporary_path(name)).unlink(missing_ok=True)

    def fetch(self, files: Sequence[StoredFile]) -> list[str]:
        for file in files:
            check_size(file, self.size(file.name))
        return [self.path(file.name) for file in files]

    def refetch(self, file: StoredFile) -> bool:
        return False

    def open_input(self, name: str) -> pa.NativeFile:
        with named_errors("open", self.path(name)):
            return self._arrow.open_input_file(self.path(name))

    def ranges(self, file: StoredFile, wanted_bytes: int = 0) -> RangedFile | None:
        return None

    def keep_excerpt(self, file: StoredFile, name: str) -> str:
        raise NotImplementedError("a folder has whole files")

    def finds_excerpt(self, name: str) -> bool:
        return False

    def size(self, name: str) -> int | None:
        with named_errors("read", self.path(name)):
            try:
                return os.stat(self.path(name)).st_size
            except FileNotFoundError:
                return None

    def read(self, name: str) -> bytes | None:
        try:
            with named_errors("read", self.path(name)):
                return Path(self.path(name)).read_bytes()
        except errors.InputOutputError:
            if self.size(name) is None:
                return None
            raise

    def copy_out(self, name: str, path: Path) -> int:
        with named_errors("copy", self.path(name)):
            return copy_file(Path(self.path(name)), path)

    def copy_in(self, path: Path, name: str) -> int:
        with named_errors("copy", str(path)):
            size = copy_file(path, Path(self.temporary_path(name)))
        self.publish(name)
        return size

    def has(self, name: str) -> bool:
        return self.size(name) is not None

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.discard(name)
            with named_errors("delete", self.path(name)):
                self.remove(name)

    def sync_deletions(self) -> None:
        with named_errors("write", str(self.folder)):
            self.sync_folder(str(self.folder))

    def names(self) -> list[str]:
        found = os.listdir(self.folder)
        return sorted(name for name in found if not name.removeprefix(TEMPORARY_PREFIX).startswith(IDENTITY_NAME))

    def free_bytes(self) -> int:
        with named_errors("read the free space of", str(self.folder)):
            found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def keeps(self, name: str) -> bool:
        return True

    def tidy(self) -> None:
        pass

    def facts(self) -> CacheFacts | None:
        return None

    def close(self) -> None:
        pass

    # The steps whose effects a power cut can undo, as separate methods so that a test can observe and undo them.

    def remove(self, name: str) -> None:
        Path(self.path(name)).unlink(missing_ok=True)

    def sync_file(self, path: str) -> None:
        sync(path)

    def rename(self, source: str, target: str) -> None:
        rename_new(source, target)

    def sync_folder(self, path: str) -> None:
        self.sync_file(path)
