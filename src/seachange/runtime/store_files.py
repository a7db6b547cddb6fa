"""The file system port over an object store, with a cache of whole files on this machine.

A file is staged in the cache, uploaded under its final name by one conditional PUT, and stays in the cache. Readers get
the paths of cached files. A file that is missing there is downloaded and verified before it gets its name.

**Invariant:** a name in the store is a complete object, durable, whose bytes never change.

**Invariant:** a path that was given out can be opened until the readers that had begun then have ended: the process
pins the file, and removes the pin only when its last stamp is below the oldest use (`file_uses.py`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from seachange import errors
from seachange.runtime.excerpts import Excerpts
from seachange.runtime.faults import reach
from seachange.runtime.file_uses import FileUses
from seachange.runtime.filesystem import IDENTITY_NAME, CacheFacts, StoredFile, check_size, named_errors
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.object_store import ObjectStore
from seachange.runtime.permissions import create_file
from seachange.runtime.ranged_file import RangeCache, RangedFile
from seachange.runtime.segment_cache import SegmentCache
from seachange.runtime.transfers import transfer_all

_DELETIONS = 500
_SEEN_MAX = 10_000
# A smaller file is fetched as a whole even for one row: the requests would take longer than its bytes.
RANGED_BYTES_MIN = 8 << 20
_RANGES_BYTES_MAX = 64 << 20
# Excerpts belong to one process, so they get only a part of what the cache may have.
_EXCERPTS_SHARE = 4
# Staging needs room for the files that are being written, at most this part of the disk; the store itself has no limit.
_STAGING_BYTES = 2 << 30
_STAGING_SHARE = 10
_UNLIMITED_BYTES = 1 << 60


class StoreFiles:
    """Thread-safe."""

    deletions_at_once = _DELETIONS

    def __init__(self, store: ObjectStore, cache: SegmentCache, ranged_bytes_min: int = RANGED_BYTES_MIN) -> None:
        self._store = store
        self._ranged_bytes_min = ranged_bytes_min
        self._parts = RangeCache(_RANGES_BYTES_MAX)
        # How much of a file was read by parts since it was fetched last.
        self._ranged: dict[str, int] = {}
        self._cache = cache
        self.uses = FileUses()
        self._excerpts = Excerpts(self.uses, cache.bytes_max // _EXCERPTS_SHARE)
        self._arrow = pafs.LocalFileSystem()
        # Guards the pins and the counters. A pin is its last stamp.
        self._lock = threading.Lock()
        self._pins: dict[str, int] = {}
        # Names that this process has seen in the store.
        self._seen: set[str] = set()
        self._hits = self._misses = self._downloaded = self._uploaded = self._evictions = 0

    @property
    def address(self) -> str:
        return self._store.url

    # Writing.

    def temporary_path(self, name: str) -> str:
        self._spare()
        return str(self._cache.staging_path(name))

    def publish(self, name: str, durable: bool = True) -> None:
        staged = self._cache.temporary_path(name)
        with named_errors("write", str(staged)):
            reach("segment.written")
            size = os.stat(staged).st_size
            self._store.create(name, staged)
            reach("segment.published")
        self._cache.adopt(name)
        with self._lock:
            self._pins[name] = self.uses.stamp()
            self._see(name)
            self._uploaded += size
        self._evict()

    def discard(self, name: str) -> None:
        staged = self._cache.temporary_path(name)
        with named_errors("delete", str(staged)):
            staged.unlink(missing_ok=True)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.discard(name)
            self._forget(name)
        with self._lock:
            self._seen.difference_update(names)
        self._store.delete(names)

    def sync_deletions(self) -> None:
        """The store has made them durable."""

    # Reading.

    def fetch(self, files: Sequence[StoredFile]) -> list[str]:
        missing = [file for file in files if not self._is_pinned(file)]
        with self._lock:
            self._hits += len(files) - len(missing)
        if missing:
            may_wait()
            transfer_all(self._obtain, missing)
            self._evict()
        return [str(self._cache.path(file.name)) for file in files]

    def refetch(self, file: StoredFile) -> bool:
        may_wait()
        with self._cache.downloading(file.name):
            self._cache.withdraw(file.name)
            self._download(file)
        return True

    def open_input(self, name: str) -> pa.NativeFile:
        path = str(self._cache.path(name))
        with named_errors("open", path):
            return self._arrow.open_input_file(path)

    def ranges(self, file: StoredFile, wanted_bytes: int = 0) -> RangedFile | None:
        read = self._ranged.get(file.name, 0) + wanted_bytes
        if file.size_bytes < self._ranged_bytes_min or 2 * read > file.size_bytes or self.keeps(file.name):
            return None

        def fetch(start: int, end: int) -> bytes:
            if self.ranges(file, end - start) is None:
                # The reader was opened when less had been read.
                with Path(self.fetch([file])[0]).open("rb") as whole:
                    whole.seek(start)
                    return whole.read(end - start)
            content = self._store.read_range(file, start, end)
            with self._lock:
                self._misses += 1
                self._downloaded += end - start
                self._ranged[file.name] = self._ranged.get(file.name, 0) + end - start
            return content

        def give_up() -> None:
            self._parts.forget(file.name)
            with self._lock:
                self._ranged[file.name] = file.size_bytes

        return RangedFile(file.name, file.size_bytes, self._parts, fetch, give_up)

    def keep_excerpt(self, file: StoredFile, name: str) -> str:
        with named_errors("write", str(self._cache.path(name))):
            os.rename(self._cache.temporary_path(name), self._cache.path(name))
            self._excerpts.add(name, file.name, self._cache.path(name))
        self._evict()
        return str(self._cache.path(name))

    def finds_excerpt(self, name: str) -> bool:
        found = self._excerpts.finds(name)
        with self._lock:
            self._hits += found
        return found

    def read(self, name: str) -> bytes | None:
        return self._store.read(name)

    def copy_out(self, name: str, path: Path) -> int:
        """Past the cache: everything is copied once."""
        with named_errors("copy", str(path)):
            create_file(path)
            found = self._store.download(name, path)
        if found is None:
            raise errors.SegmentDamaged(file=name, detail="it is missing")
        return found.size_bytes

    def copy_in(self, path: Path, name: str) -> int:
        with named_errors("copy", str(path)):
            size = os.stat(path).st_size
            self._store.create(name, path)
        return size

    def size(self, name: str) -> int | None:
        found = self._store.head(name)
        return None if found is None else found.size_bytes

    def has(self, name: str) -> bool:
        if name not in self._seen and self._store.head(name) is not None:
            with self._lock:
                self._see(name)
        return name in self._seen

    def _see(self, name: str) -> None:
        # Only the newest names are asked for.
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        self._seen.add(name)

    def names(self) -> list[str]:
        return sorted(name for name in self._store.names() if not name.startswith(IDENTITY_NAME))

    def free_bytes(self) -> int:
        free, _ = self._spare()
        return free if free < _STAGING_BYTES else _UNLIMITED_BYTES

    # The cache.

    def keeps(self, name: str) -> bool:
        return name in self._pins or self._cache.has(name)

    def tidy(self) -> None:
        self._unpin()
        self._evict()
        self._cache.sweep()

    def close(self) -> None:
        self._cache.close()

    def facts(self) -> CacheFacts:
        held = self._cache.contents()
        with self._lock:
            return CacheFacts(
                self._store.url,
                str(self._cache.folder),
                self._cache.bytes_max,
                held.files,
                held.pinned,
                held.size_bytes,
                self._hits,
                self._misses,
                self._downloaded,
                self._uploaded,
                self._evictions,
                self._excerpts.size_bytes,
            )

    def _is_pinned(self, file: StoredFile) -> bool:
        """Whether the process has the file, with the recorded size; then it is stamped."""
        with self._lock:
            if file.name not in self._pins:
                return False
            self._pins[file.name] = self.uses.stamp()
        self._cache.touch(file.name)
        return _size(self._cache.path(file.name)) == file.size_bytes

    def _obtain(self, file: StoredFile) -> None:
        """Pins the file, after it has been downloaded if necessary."""
        if self._pin(file):
            with self._lock:
                self._hits += 1
            return
        with self._cache.downloading(file.name):
            # Another process may have downloaded it meanwhile.
            if not self._pin(file):
                self._download(file)

    def _pin(self, file: StoredFile) -> bool:
        # Stamped first, so that the pin is not removed as soon as it is made.
        with self._lock:
            self._pins[file.name] = self.uses.stamp()
        if self._cache.pin(file.name):
            if _size(self._cache.path(file.name)) == file.size_bytes:
                return True
            # Cut off by a power cut.
            self._cache.drop(file.name)
        with self._lock:
            self._pins.pop(file.name, None)
        return False

    def _download(self, file: StoredFile) -> None:
        with self._lock:
            self._misses += 1
        try:
            self._transfer(file)
        except errors.SegmentDamaged:
            # Once more: the bytes may have been damaged on their way.
            self._transfer(file)
        except errors.DiskFull:
            # The disk may have less room than the limit of the cache.
            self._make_room(file.size_bytes)
            self._transfer(file)
        self._cache.adopt(file.name)
        with self._lock:
            self._pins[file.name] = self.uses.stamp()
            self._downloaded += file.size_bytes
            self._ranged.pop(file.name, None)

    def _transfer(self, file: StoredFile) -> None:
        target = self._cache.temporary_path(file.name)
        try:
            with named_errors("write", str(target)):
                found = self._store.download(file.name, target)
            check_size(file, None if found is None else found.size_bytes)
            if found is not None and found.checksum != file.checksum:
                raise errors.SegmentDamaged(file=file.name, detail="its checksum differs from the recorded one")
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def _forget(self, name: str) -> None:
        with self._lock:
            self._pins.pop(name, None)
            self._ranged.pop(name, None)
            self._cache.drop(name)
        self._excerpts.forget(name)

    def _unpin(self) -> None:
        oldest = self.uses.oldest()
        with self._lock:
            for name in [name for name, stamp in self._pins.items() if stamp < oldest]:
                del self._pins[name]
                self._cache.unpin(name)

    def _evict(self) -> None:
        """Pins are kept as long as there is room: a file that is pinned already is found fastest."""
        self._excerpts.tidy(self.keeps)
        if self._cache.is_full():
            self._make_room(0)
        self._spare()

    def _spare(self) -> tuple[int, int]:
        """The free bytes of the disk, and all of them, after the cache has given way to files that are written."""
        with named_errors("read the free space of", str(self._cache.folder)):
            free, size = self._cache.disk()
            wanted = min(_STAGING_BYTES, size // _STAGING_SHARE)
            if free < wanted:
                self._make_room(wanted - free)
                return self._cache.disk()
        return free, size

    def _make_room(self, freed_bytes_min: int) -> None:
        self._unpin()
        if freed_bytes_min:
            self._excerpts.clear()
        evicted = self._cache.evict(freed_bytes_min)
        with self._lock:
            self._evictions += evicted


def _size(path: Path) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
