"""Connections to the catalog's database, and the handling of lost ones.

Every statement runs in autocommit and READ COMMITTED; `one_snapshot` gives several statements one snapshot.

**Invariant:** a connection returns to the pool only between transactions.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from seachange import errors
from seachange.catalog.postgres.arrays import Bigints, BigintsDumper
from seachange.runtime.nonblocking import may_wait

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

SERVER_VERSION_MIN = 150_000
CONNECT_TIMEOUT_S = 10
# A dead peer is detected in about half a minute.
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
UNACKNOWLEDGED_MS_MAX = 30_000

# JIT is disabled again, in the same message: a pooler may have lost the session's settings.
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off"
_LISTEN = "LISTEN seachange_descriptors"


def describe(url: str) -> str:
    """The URL without credentials."""
    parts = conninfo_to_dict(url)
    return f"postgresql://{parts.get('host', '')}:{parts.get('port', '')}/{parts.get('dbname', '')}"


def client_error(problem: psycopg.Error, catalog: str) -> errors.Error:
    """The error that a client sees for one of PostgreSQL's."""
    if problem.sqlstate == errors.DiskFull.sqlstate:
        return errors.DiskFull(file=catalog)
    if isinstance(problem, psycopg.OperationalError | psycopg.InterfaceError):
        return errors.CatalogUnavailable(catalog=catalog, detail=str(problem).strip())
    if problem.sqlstate is not None and problem.sqlstate.startswith(("28", "3D", "3F", "42")):
        return errors.InvalidCatalog(catalog=catalog, detail=str(problem).strip())
    return errors.Bug(detail=f"{problem.sqlstate}: {problem}")


def connect(url: str, durable: bool = True) -> Connection:
    """Writes through a connection that is not durable may be lost in a crash of the server, until a durable write
    follows: the write-ahead log keeps the order."""
    # A standby may lag behind the log, so it is never used as the catalog.
    db = psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_S,
        target_session_attrs="primary",
        client_encoding="UTF8",
        application_name="seachange",
        tcp_user_timeout=UNACKNOWLEDGED_MS_MAX,
        keepalives_idle=KEEPALIVE_IDLE_S,
        keepalives_interval=KEEPALIVE_INTERVAL_S,
    )
    db.adapters.register_dumper(Bigints, BigintsDumper)
    db.execute(*settings_query(db.info.server_version, durable))
    return db


class Pool:
    """A pool of idle connections for all threads; a new one is opened when none is idle."""

    def __init__(self, url: str, durable: bool = True) -> None:
        self.name = describe(url)
        self._url = url
        self._durable = durable
        # The backend process ids of all connections so far.
        self.pids: set[int] = set()
        self._idle: list[Connection] = []
        self._closed = threading.Event()

    def take(self) -> Connection:
        may_wait()
        if self._closed.is_set():
            raise errors.CatalogUnavailable(catalog=self.name, detail="it is closed")
        try:
            return self._idle.pop()
        except IndexError:
            db = connect(self._url, self._durable)
            self.pids.add(db.info.backend_pid)
            return db

    def give(self, db: Connection) -> None:
        if self._closed.is_set():
            db.close()
        else:
            self._idle.append(db)

    def drop_idle(self) -> None:
        """After one connection was lost the others are likely to be dead as well."""
        # Several threads may find out at once, so that there may be none left where one was seen.
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        self._closed.set()
        self.drop_idle()

    def run(self, work: Callable[[Connection], T]) -> T:
        """Runs idempotent work; once more on a new connection if the first is lost."""
        try:
            return self.attempt(work)
        except errors.CatalogUnavailable:
            if self._closed.is_set():
                raise
            self.drop_idle()
            return self.attempt(work)

    def attempt(self, work: Callable[[Connection], T]) -> T:
        try:
            db = self.take()
        except psycopg.Error as problem:
            raise client_error(problem, self.name) from problem
        try:
            result = work(db)
        except psycopg.Error as problem:
            db.close()
            raise client_error(problem, self.name) from problem
        except errors.Error:
            # Raised between two statements: the connection is intact.
            self.give(db)
            raise
        except BaseException:
            db.close()
            raise
        self.give(db)
        return result


@contextmanager
def one_snapshot(db: Connection) -> Iterator[Connection]:
    """All statements of the block see the same state."""
    db.execute(_SNAPSHOT)
    try:
        yield db
    except errors.Error:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


class DescriptorWatch:
    """Notification of commits with descriptors, on a connection of its own. Only `wake` may be called while another
    thread waits. Notifications of `own`, the backend processes of this catalog's connections, are ignored: a node
    applies its own commits."""

    def __init__(self, url: str, own: Collection[int]) -> None:
        self._own = own
        self._name = describe(url)
        try:
            self._db = connect(url)
            self._db.execute(_LISTEN)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem
        self._woken, self._waker = os.pipe()
        # There are no notifications of earlier publications.
        self._is_new = True

    def wait(self, timeout_s: float) -> bool:
        if self._is_new:
            self._is_new = False
            return True
        try:
            readable, _, _ = select.select([self._db.fileno(), self._woken], [], [], timeout_s)
            if self._woken in readable or not readable:
                return False
            # All of them: a notification that is left would be reported later as new.
            notifications = list(self._db.notifies(timeout=0))
            return any(notification.pid not in self._own for notification in notifications)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def close(self) -> None:
        self._db.close()
        os.close(self._woken)
        os.close(self._waker)


# Settings of the PostgreSQL server that the catalog depends on.


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """One setting; `since` is the first server version that has it."""

    name: str
    value: str
    since: int = 0


SERVER_SETTINGS = (
    # A function that takes the sequencer lock must see in its next statement what was committed before it.
    ServerSetting("default_transaction_isolation", "read committed"),
    ServerSetting("default_transaction_read_only", "off"),
    ServerSetting("default_transaction_deferrable", "off"),
    # Statement timeouts are those of the client's session, not of the catalog's server. Idle connections belong to a
    # pool.
    ServerSetting("statement_timeout", "0"),
    ServerSetting("lock_timeout", "0"),
    ServerSetting("idle_in_transaction_session_timeout", "0"),
    ServerSetting("idle_session_timeout", "0"),
    ServerSetting("transaction_timeout", "0", since=170_000),
    # Every statement is an index lookup. A planner that saw the tables when they were empty must not choose otherwise,
    # nor plan each statement again.
    ServerSetting("plan_cache_mode", "force_generic_plan"),
    ServerSetting("enable_seqscan", "off"),
    ServerSetting("enable_indexscan", "on"),
    ServerSetting("enable_indexonlyscan", "on"),
    ServerSetting("enable_bitmapscan", "on"),
    ServerSetting("enable_nestloop", "on"),
    # A scan without an index costs 10^10 with enable_seqscan off, which is enough to start the JIT compiler: 200 ms for
    # a statement of 1 ms. Parallel workers would be started for the same reason.
    ServerSetting("jit", "off"),
    ServerSetting("max_parallel_workers_per_gather", "0"),
    # Names in the catalog's statements are qualified; functions and operators are PostgreSQL's own.
    ServerSetting("search_path", "pg_catalog, pg_temp"),
    # A row that a policy hides would be missing without an error.
    ServerSetting("row_security", "off"),
    # The text format of values.
    ServerSetting("TimeZone", "UTC"),
    ServerSetting("DateStyle", "ISO, YMD"),
    ServerSetting("IntervalStyle", "postgres"),
    ServerSetting("bytea_output", "hex"),
    ServerSetting("standard_conforming_strings", "on"),
    ServerSetting("array_nulls", "on"),
    ServerSetting("transform_null_equals", "off"),
    ServerSetting("extra_float_digits", "1"),
    ServerSetting("client_min_messages", "warning"),
)

_DURABLE = (
    "set_config('synchronous_commit', CASE WHEN NOT %s THEN 'off' WHEN current_setting('synchronous_commit') = 'off' "
    "THEN 'on' ELSE current_setting('synchronous_commit') END, false)"
)


def settings_query(server_version: int, durable: bool) -> tuple[str, list[object]]:
    """One SELECT that sets them all for the session, and its parameters."""
    known = [setting for setting in SERVER_SETTINGS if setting.since <= server_version]
    parameters: list[object] = [durable]
    for setting in known:
        parameters += [setting.name, setting.value]
    return f"SELECT {', '.join([_DURABLE] + ['set_config(%s, %s, false)'] * len(known))}", parameters
