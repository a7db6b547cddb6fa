"""The file system port: the warehouse folder.

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from seachange import errors
from seachange.runtime.faults import reach
from seachange.runtime.permissions import create_folder, file_mode
from seachange.runtime.renaming import rename_new

TEMPORARY_PREFIX = ".tmp-"
# The file with the id of the database, and the prefix of proposed ids (see runtime/identity.py).
IDENTITY_NAME = "database.id"


class FileSystem(Protocol):
    """Names are relative to the warehouse and have no folders of their own."""

    def temporary_path(self, name: str) -> str:
        """The path to write the content of `name` to before it is published."""

    def publish(self, name: str, durable: bool = True) -> None:
        """Makes the temporary file the content of `name`; raises FileExists if there is a file of that name."""

    def discard(self, name: str) -> None:
        """Removes the temporary file of `name`, if there is one."""

    def path(self, name: str) -> str: ...

    def open_input(self, name: str) -> pa.NativeFile: ...

    def size(self, name: str) -> int | None:
        """The file's size, None if it is missing."""

    def delete(self, name: str) -> None:
        """Removes the file and its temporary file; a missing one is not an error."""

    def sync_deletions(self) -> None:
        """Makes deletions durable: afterwards no power cut restores a deleted file."""

    def names(self) -> list[str]:
        """All names but that of the database id."""

    def free_bytes(self) -> int:
        """The free space."""


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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with named_errors("create", str(folder)):
            create_folder(folder)
            self._file_mode = file_mode(folder)
        # Not memory-mapped: truncation of a mapped file would kill the process instead of raising an error.
        self._arrow = pafs.LocalFileSystem()

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

    def open_input(self, name: str) -> pa.NativeFile:
        with named_errors("open", self.path(name)):
            return self._arrow.open_input_file(self.path(name))

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        self.discard(name)
        with named_errors("delete", self.path(name)):
            Path(self.path(name)).unlink(missing_ok=True)

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

    # The three steps whose effects a power cut can undo, as separate methods so that a test can observe and undo them.

    def sync_file(self, path: str) -> None:
        sync(path)

    def rename(self, source: str, target: str) -> None:
        rename_new(source, target)

    def sync_folder(self, path: str) -> None:
        self.sync_file(path)
