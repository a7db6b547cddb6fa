"""A cache of segment files on this machine, shared by its processes: plain files and hard links, no daemon.

    files/NAME          complete files
    procs/ID/NAME       a pin: a hard link, by which the process ID reads the file
    procs/ID/.tmp-NAME  a file that the process writes or downloads
    procs/ID/.lock      locked as long as the process lives

**Invariant:** a file in `files` was complete and correct when it got its name. It is not synced: after a power cut it
may be damaged, so each process verifies it before its first use.

**Invariant:** eviction removes names from `files` only. A pinned file can be read until its process removes the pin.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.filesystem import TEMPORARY_PREFIX, named_errors
from seachange.runtime.permissions import create_folder

_LOCKS = 64
_LOCK_NAME = ".lock"
_NEW_PREFIX = ".new-"
# A folder that has no lock yet is left alone for this long.
_NEW_SECONDS = 60
# Another process that downloads a file may have been stopped: it is not waited for any longer.
_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.05
# A use is noted in the file's time at most this often.
_TOUCH_US = 60_000_000


@dataclass(frozen=True, slots=True)
class CacheContents:
    """What the cache holds: complete files, those of them that a process has pinned, and their bytes."""

    files: int
    pinned: int
    size_bytes: int


class SegmentCache:
    """One process' view of the cache in a folder. Thread-safe."""

    def __init__(self, folder: Path, bytes_max: int, wait_seconds: float = _WAIT_SECONDS) -> None:
        self.folder = folder
        self.bytes_max = bytes_max
        self._wait_us = int(wait_seconds * 1_000_000)
        # Threads of this process write a file under the same temporary name.
        self._downloads = [threading.Lock() for _ in range(_LOCKS)]
        self._files, self._procs, self._locks = folder / "files", folder / "procs", folder / "locks"
        token = SYSTEM_ENTROPY.token(8).hex()
        self._new, self._own = self._procs / f"{_NEW_PREFIX}{token}", self._procs / f"{os.getpid()}-{token}"
        self._restoring = threading.Lock()
        with named_errors("create", str(folder)):
            self._create_folders()
            self.sweep()
            self._lock = self._enter()
        self._touched_us: dict[str, int] = {}

    def _create_folders(self) -> None:
        for each in (self._files, self._procs, self._locks):
            create_folder(each)

    def _enter(self) -> int:
        """Makes the folder of this process. It gets its final name when it is locked, so that no other process removes
        it."""
        create_folder(self._new)
        lock = os.open(self._new / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(self._new, self._own)
        return lock

    def _restore(self) -> None:
        """Makes the folders again if the cache has been deleted while it is in use."""
        with self._restoring, named_errors("create", str(self.folder)):
            if not (self._own / _LOCK_NAME).exists():
                self._create_folders()
                # What is left of it has no lock, so others may be removing it.
                shutil.rmtree(self._own, ignore_errors=True)
                os.close(self._lock)
                self._lock = self._enter()
            elif not (self._files.exists() and self._locks.exists()):
                self._create_folders()

    def close(self) -> None:
        shutil.rmtree(self._own, ignore_errors=True)
        os.close(self._lock)

    def staging_path(self, name: str) -> Path:
        """The temporary path of a file that is about to be written."""
        self._restore()
        return self.temporary_path(name)

    def temporary_path(self, name: str) -> Path:
        return self._own / f"{TEMPORARY_PREFIX}{name}"

    def path(self, name: str) -> Path:
        """The pin of a file."""
        return self._own / name

    def pin(self, name: str) -> bool:
        """Whether the file is there; then it stays until `unpin`."""
        with named_errors("read", str(self._files / name)):
            try:
                os.link(self._files / name, self._own / name)
            except FileNotFoundError:
                return False
            except FileExistsError:
                pass
        self.touch(name)
        return True

    def touch(self, name: str) -> None:
        """Notes that the file is in use: the time of access is set explicitly, since most systems do not maintain
        it."""
        now_us = SYSTEM_CLOCK.steady_us()
        if now_us - self._touched_us.get(name, -_TOUCH_US) < _TOUCH_US:
            return
        self._touched_us[name] = now_us
        with suppress(OSError):
            path = self._own / name
            os.utime(path, ns=(SYSTEM_CLOCK.wall_us() * 1_000, path.stat().st_mtime_ns))

    def unpin(self, name: str) -> None:
        self._touched_us.pop(name, None)
        with suppress(FileNotFoundError):
            os.unlink(self._own / name)

    def adopt(self, name: str) -> None:
        """Makes the complete temporary file the file of that name, pinned. A pin of this process is replaced."""
        with named_errors("write", str(self._own / name)):
            os.rename(self.temporary_path(name), self._own / name)
            with suppress(FileExistsError):
                os.link(self._own / name, self._files / name)

    def withdraw(self, name: str) -> None:
        """Removes the file; pins stay."""
        with suppress(FileNotFoundError):
            os.unlink(self._files / name)

    def drop(self, name: str) -> None:
        """Removes the file and the pin of this process; pins of others stay."""
        self.withdraw(name)
        self.unpin(name)

    @contextmanager
    def downloading(self, name: str) -> Iterator[None]:
        """One thread of this process downloads a file at a time, and one process, unless the other takes too long."""
        number = zlib.crc32(name.encode()) % _LOCKS
        with self._downloads[number]:
            lock = self._open_lock(str(number))
            try:
                self._lock_for_a_while(lock)
                yield
            finally:
                os.close(lock)

    def _lock_for_a_while(self, lock: int) -> None:
        until_us = SYSTEM_CLOCK.steady_us() + self._wait_us
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if SYSTEM_CLOCK.steady_us() >= until_us:
                    return None
                time.sleep(_LOOK_SECONDS)

    def evict(self, freed_bytes_min: int = 0) -> int:
        """Removes the files that were not used for longest until the cache is below its limit and so much is freed;
        returns their number. If another process is doing so, nothing is done. Pinned files stay."""
        lock = self._open_lock("evict")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return self._evict(freed_bytes_min)
        except BlockingIOError:
            return 0
        finally:
            os.close(lock)

    def _evict(self, freed_bytes_min: int) -> int:
        found = sorted(self._stats(), key=lambda item: item[1].st_atime_ns)
        excess = max(sum(stat.st_size for _, stat in found) - self.bytes_max, freed_bytes_min)
        evicted = 0
        for path, stat in found:
            if excess <= 0:
                break
            # A link that is made after this check keeps the file readable for its process.
            if stat.st_nlink == 1:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                excess -= stat.st_size
                evicted += 1
        return evicted

    def has(self, name: str) -> bool:
        return (self._files / name).exists()

    def disk(self) -> tuple[int, int]:
        """The free bytes of the disk, and all of them."""
        self._restore()
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def is_full(self) -> bool:
        return sum(stat.st_size for _, stat in self._stats()) > self.bytes_max

    def contents(self) -> CacheContents:
        stats = [stat for _, stat in self._stats()]
        return CacheContents(len(stats), sum(s.st_nlink > 1 for s in stats), sum(s.st_size for s in stats))

    def _stats(self) -> Iterator[tuple[str, os.stat_result]]:
        self._restore()
        with named_errors("read", str(self._files)), os.scandir(self._files) as entries:
            for entry in entries:
                # `entry.stat` would not be newer than the listing.
                with suppress(FileNotFoundError):
                    yield entry.path, os.stat(entry.path)

    def sweep(self) -> None:
        """Removes the folders of processes that have ended, with their pins and unfinished files."""
        with named_errors("read", str(self._procs)):
            folders = list(self._procs.iterdir())
        for folder in folders:
            if folder.name.startswith(_NEW_PREFIX) and not self._is_old(folder):
                continue
            if folder.name.startswith(_NEW_PREFIX) or self._is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def _is_old(self, folder: Path) -> bool:
        try:
            return SYSTEM_CLOCK.wall_us() / 1e6 - folder.stat().st_mtime > _NEW_SECONDS
        except FileNotFoundError:
            return False

    def _is_dead(self, folder: Path) -> bool:
        try:
            lock = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            # A removal that was interrupted.
            return folder.exists()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True

    def _open_lock(self, name: str) -> int:
        self._restore()
        with named_errors("lock", str(self._locks / name)):
            return os.open(self._locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
