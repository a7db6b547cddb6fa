"""Sorts that may exceed memory: DuckDB instances of their own, and spill folders that do not outlive the process.

**Invariant:** a spill folder in use is locked; one that can be locked has no owner and is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from seachange import errors
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_file, create_folder, folder_mode
from seachange.storage.duck_instances import GIVE_BACK_MEMORY, INSTANCES, InstanceDesign

SORT_BYTES_MAX = 512 << 20
# The number of idle DuckDB instances that a node keeps for the next sort.
IDLE_MAX = 2
_LOCK_NAME = "lock"
# Prefixes of DuckDB's errors where Arrow keeps only their text: while rows are streamed.
_PASSED_ON = {"INTERRUPT Error": duckdb.InterruptException, "Out of Memory Error": duckdb.OutOfMemoryException}


@dataclass(frozen=True, slots=True)
class SortLimits:
    """The limits of one sort; 0 threads means one per core."""

    memory_bytes_max: int = SORT_BYTES_MAX
    threads: int = 0


# Provides a connection for the duration of a sort.
Connect = Callable[[Path, SortLimits], AbstractContextManager[duckdb.DuckDBPyConnection]]


@contextmanager
def sorting_connection(
    spill: Path,
    limits: SortLimits = SortLimits(),  # noqa: B008 - a value
) -> Iterator[duckdb.DuckDBPyConnection]:
    """An instance of its own, so that it shares neither memory nor spilled blocks with the node's statements."""
    with (
        temporary_folder(spill) as folder,
        _taken(folder, limits) as instance,
        closing(instance.cursor()) as connection,
    ):
        yield _prepared(connection)


@contextmanager
def _taken(folder: Path, limits: SortLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    """An instance that is returned to the pool on success; after a failure it may be unusable, since an internal error
    of DuckDB invalidates the instance."""
    design = InstanceDesign(
        (
            ("memory_limit", f"{limits.memory_bytes_max}B"),
            *((("threads", str(limits.threads)),) if limits.threads else ()),
            # Rows are sorted on the way out, so preserving the insertion order would only cost memory.
            ("preserve_insertion_order", "false"),
        )
    )
    instance = INSTANCES.take(design, folder / "blocks")
    try:
        yield instance
    except BaseException:
        instance.close()
        raise
    INSTANCES.give_back(design, instance)


def _prepared(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    # Expressions of descriptors are evaluated here too, and must mean the same on every machine.
    connection.execute("SET TimeZone = 'UTC'")
    # The progress bar is not printed, but enables `Sorter.steps_done`.
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET integer_division = true")
    return connection


class KeptInstance:
    """A DuckDB instance that is reused for consecutive sorts: opening and closing one takes 20 to 40 ms. Tables and
    relations of a sort are dropped with its connection. It is replaced if the folder or the limits differ, and after a
    failed sort."""

    def __init__(self) -> None:
        self._of: tuple[Path, SortLimits] | None = None
        self._folder = Path()
        self._stack = ExitStack()

    @contextmanager
    def connect(self, spill: Path, limits: SortLimits) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with closing(self._cursor(spill, limits)) as connection:
                yield _prepared(connection)
                connection.execute(GIVE_BACK_MEMORY)
        except BaseException as error:
            self._of = None
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise

    def _cursor(self, spill: Path, limits: SortLimits) -> duckdb.DuckDBPyConnection:
        # The owner may have removed the folder, with the database.
        if self._of != (spill, limits) or not self._folder.exists():
            self.close()
            self._folder = self._stack.enter_context(temporary_folder(spill))
            self._instance = self._stack.enter_context(_taken(self._folder, limits))
            self._of = spill, limits
        return self._instance.cursor()

    def is_for(self, spill: Path, limits: SortLimits) -> bool:
        return self._of == (spill, limits)

    def close(self) -> None:
        self._of = None
        self._stack.close()


class SortPool:
    """The DuckDB instances of a node's sorts: a few are kept for the next sort, each used by one sort at a time, so
    that the limits of a sort are its own.

    **Invariant:** an idle instance holds nothing of the sort before, which has succeeded; a closed pool keeps none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[KeptInstance] = []
        self._idle_max = IDLE_MAX

    @contextmanager
    def connect(
        self,
        spill: Path,
        limits: SortLimits = SortLimits(),  # noqa: B008 - a value
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        kept = self._take(spill, limits)
        with kept.connect(spill, limits) as connection:
            yield connection
        self._keep(kept)

    def _take(self, spill: Path, limits: SortLimits) -> KeptInstance:
        with self._lock:
            fitting = (kept for kept in self._idle if kept.is_for(spill, limits))
            found = next(fitting, None)
            if found is None:
                return KeptInstance()
            self._idle.remove(found)
            return found

    def _keep(self, kept: KeptInstance) -> None:
        with self._lock:
            self._idle.append(kept)
            # The oldest is closed: its limits may no longer be in use.
            leaving = self._idle.pop(0) if len(self._idle) > self._idle_max else None
        if leaving is not None:
            leaving.close()

    def close(self) -> None:
        with self._lock:
            self._idle_max = 0
            leaving, self._idle = self._idle, []
        for kept in leaving:
            kept.close()


@contextmanager
def sorting() -> Iterator[None]:
    """Converts the errors of a sort: memory that could not be spilled means a full disk."""
    try:
        yield
    except (duckdb.InterruptException, duckdb.OutOfMemoryException, duckdb.IOException, OSError) as problem:
        raised = next((kind for words, kind in _PASSED_ON.items() if str(problem).startswith(words)), type(problem))
        if issubclass(raised, duckdb.InterruptException):
            raise errors.QueryCanceled(reason="user request") from problem
        detail = str(problem).splitlines()[0]
        if "offload" in detail or "No space left" in str(problem):
            raise errors.DiskFull(file="the spilled blocks of a sort") from problem
        if issubclass(raised, duckdb.OutOfMemoryException):
            raise raised(str(problem)) from problem
        raise errors.InputOutputError(action="sort through", file="spilled blocks", detail=detail) from problem


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder for one sort, locked while it exists; also removes folders that dead processes left behind."""
    with named_errors("spill to", str(parent)):
        create_folder(parent)
        with _locked(parent / _LOCK_NAME):
            _remove_left_behind(parent)
            folder = Path(tempfile.mkdtemp(prefix="sort-", dir=parent))
            folder.chmod(folder_mode(parent))
            lock = _open_lock(folder / _LOCK_NAME)
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_left_behind(parent: Path) -> None:
    for folder in parent.glob("sort-*"):
        try:
            lock = _open_lock(folder / _LOCK_NAME)
        except FileNotFoundError:
            # Its sort has just ended.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            # Its sort is still running.
            continue
        finally:
            os.close(lock)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open_lock(path: Path) -> int:
    create_file(path)
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
