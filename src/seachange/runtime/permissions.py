"""Permissions of a data folder and of the files in it, as set by initdb and the PostgreSQL server.

A data folder belongs to its owner alone (0700, files 0600), or its group may read it (0750, files 0640).

**Invariant:** what Seachange creates in a folder gets the folder's own permissions, whatever the umask of the process
is. A folder that is open to others counts as private: its new files are 0600.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

PRIVATE = 0o700
GROUP_ACCESS = 0o750
_OPEN_TO_OTHERS = 0o027
_FILE_BITS = 0o666


def folder_mode(folder: Path) -> int:
    return GROUP_ACCESS if _mode(folder) == GROUP_ACCESS else PRIVATE


def file_mode(folder: Path) -> int:
    """The mode of new files in this folder.

    >>> oct(file_mode(Path("/nonexistent")))
    '0o600'
    """
    return folder_mode(folder) & _FILE_BITS


def is_open_to_others(folder: Path) -> bool:
    """Whether others may read the folder, or its group may write to it."""
    return bool(_mode(folder) & _OPEN_TO_OTHERS)


def create_data_folder(folder: Path, group_access: bool = False) -> None:
    """An empty folder that exists already is made private as well."""
    mode = GROUP_ACCESS if group_access else PRIVATE
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode, exist_ok=True)
    elif any(folder.iterdir()) or not (group_access or is_open_to_others(folder)):
        return
    folder.chmod(mode)


def create_folder(folder: Path) -> None:
    """Creates missing parents too; an existing folder keeps its permissions."""
    if folder.is_dir():
        return
    create_folder(folder.parent)
    mode = folder_mode(folder.parent)
    folder.mkdir(mode, exist_ok=True)
    folder.chmod(mode)


def create_file(path: Path) -> None:
    """Creates an empty file, unless there is one, for a library that would create it with the umask."""
    mode = file_mode(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return
    os.fchmod(descriptor, mode)
    os.close(descriptor)


def copy_file(source: Path, target: Path) -> int:
    """Returns the number of bytes."""
    create_file(target)
    shutil.copyfile(source, target)
    return target.stat().st_size


def restrict_process(folder: Path) -> None:
    """Applies the permissions to files that libraries and child processes create, too: only for a process that does
    nothing but serve this folder."""
    os.umask(0o777 & ~folder_mode(folder))


def _mode(folder: Path) -> int:
    try:
        return stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return PRIVATE
