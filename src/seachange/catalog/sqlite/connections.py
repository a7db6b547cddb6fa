"""Connections to the catalog's SQLite file: writers behind the fair lock, and a pool of readers.

**Invariant:** a transaction lives as long as one `with` block, so no reader holds back the write-ahead log for long.

**Invariant:** the kernel releases a dead process's locks; nothing here outlives its holder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from seachange import errors
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.permissions import create_file

# Other programs (a backup, a shell) may hold SQLite's own lock for a moment.
BUSY_TIMEOUT_S = 20.0
SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    # As many pages as `make_room` makes room for; the log shrinks again after a burst.
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA journal_size_limit = 67108864",
)

# Slightly more than the pages between two checkpoints, with their headers.
_ROOM_BYTES = 1_050 * (4_096 + 24)
_FULL = 13
_BUSY = frozenset({5, 6})
_DAMAGED = frozenset({11, 26})
_PRIMARY_CODE_MASK = 0xFF
MOUNTINFO = Path("/proc/self/mountinfo")

_NETWORK = """
    9p afs beegfs ceph cifs coda fuse.ceph fuse.cephfs fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.juicefs
    fuse.rclone fuse.s3fs fuse.sshfs glusterfs gpfs lustre ncpfs nfs nfs4 orangefs pvfs2 smb3 smbfs
"""
NETWORK_FILE_SYSTEMS = frozenset(_NETWORK.split())
_VERSION = "PRAGMA data_version"
LOOKS_PER_SECOND = 10


def connect(path: Path) -> sqlite3.Connection:
    try:
        # SQLite uses the permissions of this file for its companions.
        create_file(path)
        db = sqlite3.connect(
            path,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        for setting in SETTINGS:
            db.execute(setting)
    except (sqlite3.Error, OSError) as problem:
        raise client_error(problem, path) from problem
    return db


def client_error(problem: sqlite3.Error | OSError, path: Path) -> errors.Error:
    """The error that a client sees for one of SQLite's, or of the disk below it."""
    if isinstance(problem, OSError):
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        other = errors.InputOutputError(action="use", file=str(path), detail=str(problem))
        return errors.DiskFull(file=str(path)) if full else other
    code = getattr(problem, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK
    if code == _FULL:
        return errors.DiskFull(file=str(path))
    if code in _BUSY or isinstance(problem, sqlite3.ProgrammingError):
        return errors.CatalogUnavailable(catalog=str(path), detail=str(problem))
    if code in _DAMAGED:
        return errors.InvalidCatalog(catalog=str(path), detail=str(problem))
    return errors.InputOutputError(action="use", file=str(path), detail=str(problem))


class SqliteWriter:
    """One connection that writes; `with writer as db` is one write transaction under the fair lock."""

    def __init__(self, path: Path, lock_path: Path, durable: bool = True) -> None:
        """Unless `durable`, a power cut may lose the last transactions, never parts of them."""
        self._path = path
        self._has_room = False
        try:
            self._lock = FairLock(lock_path)
        except OSError as problem:
            raise errors.InvalidCatalog(catalog=str(path), detail=problem.strerror or str(problem)) from problem
        with ExitStack() as undo:
            undo.callback(self._lock.close)
            # Under the lock, so that two processes that create the file concurrently do not interfere.
            with self._lock:
                self._db = connect(path)
                undo.callback(self._db.close)
                self._write_ahead()
                if not durable:
                    self._db.execute("PRAGMA synchronous = NORMAL")
            undo.pop_all()

    def _write_ahead(self) -> None:
        try:
            (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.Error as problem:
            raise client_error(problem, self._path) from problem
        if mode != "wal":
            raise errors.InvalidCatalog(
                catalog=str(self._path), detail="its file system has no shared memory for a write-ahead log"
            )

    def __enter__(self) -> sqlite3.Connection:
        may_wait()
        self._lock.acquire()
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException as problem:
            try:
                # It may have begun, and only its answer was lost.
                self._roll_back()
            finally:
                self._lock.release()
            if isinstance(problem, sqlite3.Error):
                raise client_error(problem, self._path) from problem
            raise
        return self._db

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if problem is None:
                self._commit()
                return
            self._roll_back()
        finally:
            self._lock.release()
        if isinstance(problem, sqlite3.Error | OSError):
            raise client_error(problem, self._path) from problem

    def make_room(self) -> None:
        """Grows the write-ahead log to its usual size, inside a transaction. An fsync after overwriting zeros takes
        half the time of one after extending the file; SQLite ignores the zeros, like the frames of an earlier round."""
        if self._has_room:
            return
        self._has_room = True
        # On a full disk the commit itself will raise the error.
        with suppress(OSError), open(f"{self._path}-wal", "ab", buffering=0) as log:
            # The lock is held, so no frame is being appended.
            log.write(bytes(max(0, _ROOM_BYTES - log.tell())))

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except MemoryError as problem:
            self._roll_back()
            raise errors.OutOfMemory(detail="the catalog's COMMIT has failed") from problem
        except sqlite3.Error as problem:
            self._roll_back()
            raise client_error(problem, self._path) from problem

    def _roll_back(self) -> None:
        # Some errors have rolled back already.
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            self._db.close()
        self._lock.close()


class Readers:
    """A pool of idle connections for reading, shared by all threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    def take(self) -> sqlite3.Connection:
        if self._closed:
            raise errors.CatalogUnavailable(catalog=str(self.path), detail="it is closed")
        try:
            return self._idle.pop()
        except IndexError:
            return connect(self.path)

    def give(self, db: sqlite3.Connection) -> None:
        if self._closed:
            db.close()
        else:
            self._idle.append(db)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class Read:
    """`with Read(readers) as db` is one read transaction: all its statements see the same state."""

    __slots__ = ("_db", "_readers")

    def __init__(self, readers: Readers) -> None:
        # A read can be large.
        may_wait()
        self._readers = readers
        self._db = readers.take()

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._db.execute("BEGIN")
        except sqlite3.Error as problem:
            self._db.close()
            raise client_error(problem, self._readers.path) from problem
        return self._db

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, sqlite3.Error):
            self._db.close()
            raise client_error(problem, self._readers.path) from problem
        # SQLite has rolled back already if it found no memory.
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._readers.give(self._db)


# Detection of the file system of a path: SQLite's locks are not reliable over a network.
def file_system_of(path: PurePosixPath, mountinfo: str) -> str | None:
    """The type of the file system that holds an absolute path, None if no mount does.

    >>> text = "1 0 0:1 / / rw - ext4 /dev/a rw\\n2 1 0:2 / /data rw shared:1 - nfs4 host:/x rw"
    >>> file_system_of(PurePosixPath("/data/db"), text)
    'nfs4'
    """
    inside = f"{path}/".replace("//", "/")
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(), after.split()
        if len(fields) < 5 or not types:
            continue
        point = _unescape(fields[4]).rstrip("/") + "/"
        # A later mount on the same point hides the earlier one.
        if inside.startswith(point) and (best is None or len(point) >= best[0]):
            best = (len(point), types[0])
    return best[1] if best else None


def _unescape(field: str) -> str:
    """Decodes the octal escapes that the kernel writes for blanks and backslashes."""
    if "\\" not in field:
        return field
    for code in (" ", "\t", "\n", "\\"):
        field = field.replace(f"\\{ord(code):03o}", code)
    return field


def refuse_network_file_system(path: Path) -> None:
    if not MOUNTINFO.exists():
        return
    found = file_system_of(PurePosixPath(path.resolve()), MOUNTINFO.read_text())
    if found in NETWORK_FILE_SYSTEMS:
        raise errors.NetworkFileSystem(path=str(path), filesystem=found)


class FileWatch:
    """Detects commits of other processes by SQLite's own counter, which costs a read of shared memory."""

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


# A fair lock before SQLite's own, whose busy handler can starve other processes.


class FairLock:
    """Exclusive between threads and between processes. Not reentrant.

    A process that wants the lock first queues for the place of the next one; a process that releases the lock and wants
    it again finds that place taken, so a waiter is overtaken at most once by each other process.
    """

    def __init__(self, path: Path) -> None:
        self._thread_next, self._thread = threading.Lock(), threading.Lock()
        flags = os.O_RDWR | os.O_CLOEXEC
        next_path = path.with_name(f"{path.name}-next")
        create_file(next_path)
        create_file(path)
        self._file_next = os.open(next_path, flags)
        self._file = os.open(path, flags)

    def acquire(self) -> None:
        with self._thread_next:
            self._thread.acquire()
        try:
            fcntl.flock(self._file_next, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            finally:
                fcntl.flock(self._file_next, fcntl.LOCK_UN)
        except BaseException:
            self._thread.release()
            raise

    def release(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._thread.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        self.release()

    def close(self) -> None:
        os.close(self._file_next)
        os.close(self._file)
