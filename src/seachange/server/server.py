"""The server: listens, counts its clients, runs their statements on threads, and shuts down in order."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from seachange import errors
from seachange.engine.context.problem_log import log_internal
from seachange.engine.node.node import Node
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.threads import start_thread
from seachange.server.client import ClientSocket
from seachange.server.limits import Throttle, read_limits
from seachange.server.login import AuthConfig
from seachange.server.messages import Cancel

_BACKLOG = 512
# The maximum duration of a shutdown, and the fractions of it after which statements are cancelled, connections are
# closed, and threads are abandoned.
GRACE_SECONDS = 10.0
_CANCEL_AT, _CUT_AT, _LEAVE_AT = 0.5, 0.75, 0.9
# How often cancelled statements are checked.
_OVERDUE_LOOK_SECONDS = 0.5
# The minimum limit for connections that are not authenticated yet.
_STRANGERS_MAX = 100
_US = 1_000_000

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    host: str
    port: int
    auth_config: AuthConfig
    tls: ssl.SSLContext | None = None
    # None: the setting of the database.
    connections_max: int | None = None
    # The maximum duration of a shutdown.
    grace_seconds: float = GRACE_SECONDS
    # Whether an unencrypted connection is refused.
    requires_tls: bool = False


class Server:
    def __init__(self, node: Node, options: ServerOptions) -> None:
        self.node = node
        self.auth_config = options.auth_config
        self.tls = options.tls
        self.requires_tls = options.requires_tls
        self.is_stopping = False
        self.limits = read_limits(node.parts.settings, options.connections_max)
        self.throttle = Throttle()
        self._options = options
        # All sockets, those that have begun to log in, and those with a session by its number.
        self._arrived: set[ClientSocket] = set()
        self._clients: set[ClientSocket] = set()
        self._numbers: dict[int, ClientSocket] = {}
        self._executor = WorkerThreads("seachange-client", self._note_failure)
        self._listener: asyncio.Server | None = None
        self._overdue_timer: asyncio.TimerHandle | None = None
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    async def start(self) -> int:
        """Returns the port."""
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                lambda: ClientSocket(self, loop), self._options.host, self._options.port, backlog=_BACKLOG
            )
        except OSError as problem:
            address = f"{self._options.host}:{self._options.port}"
            raise errors.InputOutputError(
                action="listen on", file=address, detail=problem.strerror or problem
            ) from problem
        self._overdue_timer = loop.call_later(_OVERDUE_LOOK_SECONDS, self._end_overdue, loop)
        return int(self._listener.sockets[0].getsockname()[1])

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        for client in list(self._arrived):
            client.end_overdue()
        self._overdue_timer = loop.call_later(_OVERDUE_LOOK_SECONDS, self._end_overdue, loop)

    async def stop(self) -> bool:
        """Accepts no new clients; running statements get a part of the grace period, then they are cancelled. Returns
        False if a statement did not stop even then."""
        self.is_stopping = True
        if self._listener is not None:
            self._listener.close()
        if self._overdue_timer is not None:
            self._overdue_timer.cancel()
        loop = asyncio.get_running_loop()
        begun, grace = loop.time(), self._options.grace_seconds
        for at_once, cuts, until in ((False, False, _CANCEL_AT), (True, False, _CUT_AT), (True, True, _LEAVE_AT)):
            for client in list(self._arrived):
                client.stop(at_once=at_once)
                if cuts:
                    client.abort()
            try:
                await asyncio.wait_for(self._is_empty.wait(), max(begun + until * grace - loop.time(), 0))
                break
            except TimeoutError:
                continue
        left = max(begun + _LEAVE_AT * grace - loop.time(), 0)
        return await asyncio.to_thread(self._executor.stop, left)

    @property
    def client_count(self) -> int:
        return len(self._clients)

    @property
    def stranger_count(self) -> int:
        return len(self._arrived) - len(self._clients)

    # For clients.

    def arrive(self, client: ClientSocket) -> bool:
        self._arrived.add(client)
        self._is_empty.clear()
        return len(self._arrived) <= 2 * self.limits.connections_max + _STRANGERS_MAX and not self.is_stopping

    def welcome(self, client: ClientSocket) -> None:
        if len(self._clients) >= self.limits.connections_max:
            raise errors.TooManyConnections(count=len(self._clients))
        self._clients.add(client)

    def enroll(self, client: ClientSocket, number: int) -> None:
        self._numbers[number] = client

    def leave(self, client: ClientSocket) -> None:
        self._clients.discard(client)
        self._numbers.pop(client.number, None)
        self._arrived.discard(client)
        if not self._arrived:
            self._is_empty.set()

    def run(self, work: Callable[[], None]) -> None:
        self._executor.run(work)

    def cancel(self, request: Cancel) -> None:
        client = self._numbers.get(request.process)
        if client is not None and client.matches(request.secret):
            self.cut(client)

    def cut(self, client: ClientSocket) -> None:
        self._executor.run(client.cancel)

    def _note_failure(self, problem: Exception) -> None:
        log_internal(self.node.parts.log, SYSTEM_ENTROPY, problem, "work for a client")


# The worker threads for clients; their number grows to the maximum that was ever busy at once.
#
# **Invariant:** each piece of work gets a thread at once, an idle one or a new one: none waits for another to end.
class WorkerThreads:
    """Used instead of a ThreadPoolExecutor, whose futures cost as much as a short statement."""

    def __init__(self, name: str, on_failure: Callable[[Exception], None]) -> None:
        self._name = name
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        # None ends the thread that takes it.
        self._work: SimpleQueue[Work | None] = SimpleQueue()

    def run(self, work: Work) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                thread = threading.Thread(target=self._serve, name=f"{self._name}_{len(self._threads)}", daemon=True)
                start_thread(thread)
                self._threads.append(thread)
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception as problem:  # noqa: BLE001 - the thread has others to work for
                self._on_failure(problem)
            with self._lock:
                self._idle += 1

    def stop(self, timeout_s: float) -> bool:
        """Stops after pending work. Returns False if some work did not end in time; its threads end with the
        process."""
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._work.put(None)
        end_us = SYSTEM_CLOCK.steady_us() + round(timeout_s * _US)
        for thread in threads:
            thread.join(max(end_us - SYSTEM_CLOCK.steady_us(), 0) / _US)
        return not any(thread.is_alive() for thread in threads)
