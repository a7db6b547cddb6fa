"""Renaming a file without replacing another one, on every kind of file system.

Three methods, tried in order: `renameat2` with RENAME_NOREPLACE (one step; Linux, local file systems), a hard link and
the removal of the old name (NFS), and, where a file system has neither, a check and a rename under a lock file.

**Invariant:** an existing file with the new name stays as it is, and the caller gets FileExistsError. The new name
never refers to an incomplete file.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

# The number of the system call depends on the processor; the C library knows it.
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
_AT_FDCWD = -100
_NOREPLACE = 1
# Error codes of file systems and C libraries that do not support it.
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK})
# Named like the files of the database id, so that it is not taken for a segment.
LOCK_NAME = ".tmp-database.id-lock"


def _rename_noreplace(source: str, target: str) -> None:
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if _renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), source, None, target)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        # An NFS server that receives a retry, because its first answer was lost, reports this for its own link.
        if not os.path.samefile(source, target):
            raise
    # Another process may have done the same for us.
    with suppress(FileNotFoundError):
        os.unlink(source)


def _rename_locked(source: str, target: str) -> None:
    """The lock is released if the process dies; all renames in this folder take it."""
    lock = os.open(os.path.join(os.path.dirname(target), LOCK_NAME), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, target)
        os.rename(source, target)
    finally:
        os.close(lock)


Way = Callable[[str, str], None]
WAYS: tuple[Way, ...] = (_rename_noreplace, _link, _rename_locked)


def rename_new(source: str, target: str, ways: Sequence[Way] = WAYS) -> None:
    for way in ways[:-1]:
        try:
            way(source, target)
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED:
                raise
        else:
            return
    ways[-1](source, target)
