"""The excerpts of one process: copies with holes of files that are elsewhere, in its folder of the cache.

**Invariant:** an excerpt is removed only when the readers that were given its path have ended (`file_uses.py`), or with
its file. A process that starts has none: those of dead processes go with their folders.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seachange.runtime.file_uses import FileUses


@dataclass(slots=True)
class _Excerpt:
    file: str
    path: Path
    size_bytes: int
    stamp: int


class Excerpts:
    """Those used last, up to `bytes_max`, and those in use. Thread-safe."""

    def __init__(self, uses: FileUses, bytes_max: int) -> None:
        self._uses = uses
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._held: dict[str, _Excerpt] = {}

    def add(self, name: str, file: str, path: Path) -> None:
        # Holes take no room.
        size = os.stat(path).st_blocks * 512
        with self._lock:
            self._held[name] = _Excerpt(file, path, size, self._uses.stamp())

    def finds(self, name: str) -> bool:
        with self._lock:
            found = self._held.get(name)
            if found is None or not found.path.exists():
                return False
            found.stamp = self._uses.stamp()
            return True

    @property
    def size_bytes(self) -> int:
        with self._lock:
            return sum(each.size_bytes for each in self._held.values())

    def forget(self, file: str) -> None:
        with self._lock:
            for name in [name for name, each in self._held.items() if each.file == file]:
                self._remove(name)

    def tidy(self, is_redundant: Callable[[str], bool]) -> None:
        """Removes what is not in use and of redundant files, or too much."""
        oldest = self._uses.oldest()
        with self._lock:
            excess = sum(each.size_bytes for each in self._held.values()) - self._bytes_max
            for name, each in sorted(self._held.items(), key=lambda item: item[1].stamp):
                if each.stamp < oldest and (excess > 0 or is_redundant(each.file)):
                    excess -= each.size_bytes
                    self._remove(name)

    def clear(self) -> None:
        """Removes all that are not in use."""
        self.tidy(lambda _: True)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._held.pop(name).path)
