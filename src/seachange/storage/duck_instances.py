"""A pool of DuckDB instances for reuse in this process: opening and closing one takes 20 to 40 ms.

**Invariant:** an idle instance holds nothing of its last user: almost no memory, no spilled block, no folder and no
internal failure of DuckDB. A process that forks has no idle instance, since its child could not end the threads.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from seachange.runtime.threads import starting_threads
from seachange.values.format_text import quote_literal

# An idle instance takes about 5 MB; a process keeps no more than it has used at a time.
IDLE_MAX = 8
_HELD_BYTES_MAX = 8 << 20
_HELD_BYTES = "SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory()"
# Returns freed memory to the system within seconds. DuckDB would keep it until an instance of this process is closed.
GIVE_BACK_MEMORY: Final = "SET allocator_background_threads = true"


@dataclass(frozen=True, slots=True)
class InstanceDesign:
    """How an instance is opened: its configuration, and the statements that prepare it for every user."""

    config: tuple[tuple[str, str | bool], ...]
    statements: tuple[str, ...] = ()

    def open(self) -> duckdb.DuckDBPyConnection:
        config: Mapping[str, str | bool | int | float | list[str]] = dict(self.config)
        # DuckDB starts threads, and ends the process if it finds no memory for what they need.
        with starting_threads():
            connection = duckdb.connect(":memory:", config=dict(config))
            try:
                for statement in self.statements:
                    connection.execute(statement)
            except duckdb.Error:
                connection.close()
                raise
            return connection


class DuckInstances:
    """The idle instances of a process, the last used one at the end."""

    def __init__(self, idle_max: int = IDLE_MAX) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[InstanceDesign, duckdb.DuckDBPyConnection]] = []
        self._idle_max = idle_max

    def take(self, design: InstanceDesign, spill_folder: Path) -> duckdb.DuckDBPyConnection:
        """An instance that spills to the folder: an idle one of this design, or a new one."""
        connection = self._find(design) or design.open()
        try:
            connection.execute(f"SET GLOBAL temp_directory = {quote_literal(str(spill_folder))}")
        except duckdb.Error:
            connection.close()
            raise
        return connection

    def _find(self, design: InstanceDesign) -> duckdb.DuckDBPyConnection | None:
        with self._lock:
            fitting = [item for item in self._idle if item[0] == design]
            if not fitting:
                return None
            self._idle.remove(fitting[-1])
        return fitting[-1][1]

    def give_back(self, design: InstanceDesign, connection: duckdb.DuckDBPyConnection) -> None:
        """Keeps an instance for its next user if it is as good as new, else closes it."""
        if not _is_as_new(connection):
            connection.close()
            return
        with self._lock:
            self._idle.append((design, connection))
            leaving = self._idle.pop(0) if len(self._idle) > self._idle_max else None
        if leaving is not None:
            leaving[1].close()

    def close_idle(self) -> None:
        with self._lock:
            leaving, self._idle = self._idle, []
        for _, connection in leaving:
            connection.close()


def _is_as_new(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        # DuckDB refuses this once it has spilled: its blocks may still be in the folder.
        connection.execute("SET GLOBAL temp_directory = ''")
        connection.execute(GIVE_BACK_MEMORY)
        held = connection.execute(_HELD_BYTES).fetchone()
    except duckdb.Error:
        # After an internal error DuckDB refuses every statement.
        return False
    return held is not None and held[0] <= _HELD_BYTES_MAX


INSTANCES: Final = DuckInstances()
atexit.register(INSTANCES.close_idle)
os.register_at_fork(before=INSTANCES.close_idle)
