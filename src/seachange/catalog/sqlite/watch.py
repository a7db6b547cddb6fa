"""Detects commits of other processes by SQLite's own counter, which costs a read of shared memory."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from seachange.catalog.sqlite.connections import client_error, connect

_VERSION = "PRAGMA data_version"
LOOKS_PER_SECOND = 10


class FileWatch:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = connect(path)
        self._woken = threading.Event()
        self._seen = -1

    def wait(self, timeout_s: float) -> bool:
        for _ in range(max(1, int(timeout_s * LOOKS_PER_SECOND))):
            if self._has_changed():
                return True
            if self._woken.wait(1 / LOOKS_PER_SECOND):
                return False
        return False

    def _has_changed(self) -> bool:
        try:
            (version,) = self._db.execute(_VERSION).fetchone()
        except sqlite3.Error as problem:
            raise client_error(problem, self._path) from problem
        before, self._seen = self._seen, int(version)
        return before != self._seen

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._db.close()
