"""The folder of a database that lives no longer than its connection: in memory, if the machine has a file system there.

**Invariant:** a folder is removed by its own process, or by any later one once that process has ended: a program that
was killed does not keep memory.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from seachange.runtime.process import is_gone, name_process

_PREFIX = "seachange-memory-"
_SHARED_MEMORY = Path("/dev/shm")
_OWNER = "owner"
_DATA = "data"


class MemoryFolder:
    """`data` is where the database goes; `remove` deletes it."""

    def __init__(self, parent: Path | None = None) -> None:
        chosen = parent if parent is not None else _parent()
        _remove_left_behind(chosen)
        # Readable by this user alone.
        self._folder = Path(mkdtemp(prefix=_PREFIX, dir=chosen))
        (self._folder / _OWNER).write_text(name_process())
        self.data = self._folder / _DATA

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _parent() -> Path:
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(gettempdir())


def _remove_left_behind(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        # Those of other users cannot be read; one that has no owner yet is being created.
        with suppress(OSError):
            if is_gone((folder / _OWNER).read_text()):
                shutil.rmtree(folder, ignore_errors=True)
