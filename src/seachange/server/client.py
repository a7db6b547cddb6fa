"""One client socket: parses bytes into messages on the event loop, and hands them to a worker thread.

**Invariant:** the loop never waits for a statement, and a thread only for its own client.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol, cast

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.replica.open_sessions import ClientLink
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.nonblocking import WouldWait, non_blocking
from seachange.server import messages as m
from seachange.server.client_log import ClientLog
from seachange.server.connection import ClientConnection
from seachange.server.inbox import Inbox
from seachange.server.limits import REFUSAL_SECONDS, Limits, Throttle, find_patience_ms, silence_error
from seachange.server.login import AuthConfig, Login
from seachange.server.messages import error_report, notice_report
from seachange.server.outbox import Outbox

_MS = 1_000
_US = 1_000_000
_SECRET_BYTES = 4
# TCP keepalive: dead peers are disconnected after two minutes.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
)


class ServerContext(Protocol):
    """What a client needs from its server."""

    node: Node
    auth_config: AuthConfig
    tls: ssl.SSLContext | None
    requires_tls: bool
    limits: Limits
    throttle: Throttle
    is_stopping: bool

    def arrive(self, client: ClientSocket) -> bool:
        """Registers an open socket; False if there are too many."""

    def welcome(self, client: ClientSocket) -> None:
        """Raises TooManyConnections."""

    def enroll(self, client: ClientSocket, number: int) -> None:
        """Cancel requests name the session by this number; called on a thread."""

    def leave(self, client: ClientSocket) -> None: ...

    def run(self, work: Callable[[], None]) -> None:
        """Runs it on a thread, without waiting."""

    def cancel(self, request: m.Cancel) -> None: ...

    def cut(self, client: ClientSocket) -> None:
        """Cancels what runs for a client, without waiting."""


class ClientSocket(asyncio.Protocol):
    def __init__(self, server_context: ServerContext, loop: asyncio.AbstractEventLoop) -> None:
        self._server_context = server_context
        self._loop = loop
        self._frames = m.FrameReader()
        self._login = Login(server_context.auth_config, SYSTEM_ENTROPY)
        self._inbox = Inbox(self._resume)
        self._connection: ClientConnection | None = None
        self._is_secure = False
        self._is_upgrading = False
        self._is_held = False
        self._is_refused = False
        self._is_handed_over = False
        # The server removes the client when both its session and its socket are closed.
        self._is_parted = False
        self._is_lost = False
        self._is_logged_in = False
        # That of its session.
        self.number = 0
        self._secret = SYSTEM_ENTROPY.token(_SECRET_BYTES)
        # The last message to a client whose session was ended.
        self._last_problem: errors.Error | None = None
        self._task: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        # Whether an idle timeout is set or pending.
        self._is_awaited = False

    # On the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = Outbox(self._loop, self._transport, _number(self._transport))
        self._address, self._port = _peer(transport)
        _keep_alive(self._transport)
        self._login_timer = self._loop.call_later(self._server_context.limits.login_ms / _MS, self._end_login)
        if not self._server_context.arrive(self):
            self._transport.abort()

    def _end_login(self) -> None:
        if self._is_upgrading:
            # No message can be sent during the TLS handshake.
            self.abort()
        else:
            self._refuse(errors.LoginTimeout(ms=self._server_context.limits.login_ms))

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._frames.feed(data)
        self._go_on()

    def _go_on(self) -> None:
        try:
            self._receive()
        except errors.Error as error:
            self._refuse(error)

    def _receive(self) -> None:
        taken: list[m.MessageFrame] = []
        while not self._is_deaf and (frame := self._frames.next()) is not None:
            if self._is_handed_over:
                taken.append(frame)
            elif not self._frames.is_started:
                self._start(frame)
            else:
                self._answer(self._login.answer(frame))
        if taken and self._inbox.put(taken):
            connection = self._connection
            if connection is not None and self._outbox.has_room and connection.answers_at_once(taken):
                self._answer_at_once()
            else:
                self._server_context.run(self._work)
        if self._inbox.is_full:
            self._transport.pause_reading()

    def _answer_at_once(self) -> None:
        """Runs on the loop: handing over to a thread would take longer, unless the statement has to wait."""
        try:
            with non_blocking():
                self._work()
        except WouldWait:
            self._server_context.run(self._work)

    @property
    def _is_deaf(self) -> bool:
        """Input during a TLS handshake is not encrypted; input before authentication begins is too early."""
        return self._is_upgrading or self._is_held or self._is_refused

    def _start(self, frame: m.MessageFrame) -> None:
        startup = m.read_startup(frame.body)
        match (startup.major, startup.minor):
            case m.SSL_REQUEST:
                self._upgrade()
            case m.GSS_REQUEST:
                self._transport.write(m.SSL_REFUSED)
            case m.CANCEL_REQUEST:
                self._server_context.cancel(m.read_cancel(startup.rest))
                self._transport.close()
            case _:
                self._frames.is_started = True
                if self._server_context.is_stopping:
                    raise errors.ServerStops()
                if self._server_context.requires_tls and not self._is_secure:
                    raise errors.EncryptionRequired()
                self._server_context.welcome(self)
                self._admit(startup)

    def _admit(self, startup: m.Startup) -> None:
        """Begins authentication, delayed if the address has failed before."""
        wait_ms_max = self._server_context.limits.login_ms // 2
        wait_us = self._server_context.throttle.admit(self._address, self._now_us(), wait_ms_max * _MS)
        if wait_us is None:
            raise errors.TooManyFailures(address=self._address)
        follow = self._server_context.auth_config.follow
        if not wait_us and follow is None:
            self._answer(self._login.start(startup))
            return
        self._is_held = True
        self._transport.pause_reading()
        self._loop.call_later(wait_us / _US, self._look_up, follow, startup)

    def _look_up(self, follow: Callable[[], object] | None, startup: m.Startup) -> None:
        """Catches up with the catalog first, so that a password changed on another node is known."""
        if follow is None:
            self._begin_held(startup)
        else:
            self._server_context.run(partial(self._follow, follow, startup))

    def _begin_held(self, startup: m.Startup, problem: errors.Error | None = None) -> None:
        self._is_held = False
        if self._is_lost or self._is_refused:
            return
        self._transport.resume_reading()
        try:
            if problem is not None:
                raise problem
            self._answer(self._login.start(startup))
        except errors.Error as error:
            self._refuse(error)
            return
        self._go_on()

    def _now_us(self) -> int:
        return self._server_context.node.parts.clock.steady_us()

    def _upgrade(self) -> None:
        if self._is_secure or self._server_context.tls is None:
            self._transport.write(m.SSL_REFUSED)
            return
        if self._frames.pending_bytes:
            # Bytes buffered before the TLS handshake may have been injected; reject them.
            raise errors.ProtocolViolation(detail="received unencrypted data after SSL request")
        self._is_upgrading = True
        # Further input is for the TLS layer.
        self._transport.pause_reading()
        self._transport.write(m.SSL_ACCEPTED)
        self._task = self._loop.create_task(self._secure(self._server_context.tls))

    async def _secure(self, context: ssl.SSLContext) -> None:
        try:
            secure = await self._loop.start_tls(
                self._transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._server_context.limits.login_ms / _MS,
            )
        except (OSError, ssl.SSLError):
            self._transport.abort()
            return
        if secure is None:
            return
        self._transport = secure
        self._outbox = Outbox(self._loop, self._transport)
        self._is_secure, self._is_upgrading = True, False
        self._go_on()

    def _answer(self, data: bytes) -> None:
        self._transport.write(data)
        if self._login.is_done:
            self._login_timer.cancel()
            self._frames.bytes_max = self._server_context.limits.message_bytes_max
            self._is_handed_over = True
            self._inbox.occupy()
            self._server_context.run(self._open)

    def _refuse(self, error: errors.Error) -> None:
        """Sends a fatal error and closes the connection."""
        self._is_refused = True
        self._log.note_refusal(error)
        delay = 0.0
        if isinstance(error, errors.InvalidPassword):
            self._server_context.throttle.note_failure(self._address, self._now_us())
            delay = REFUSAL_SECONDS
        self._loop.call_later(delay, self._say_last, error_report(error, "FATAL"))

    @property
    def _log(self) -> ClientLog:
        return ClientLog(
            self._server_context.node.parts.log, self._login.user, self._login.database, self._address, self.number
        )

    def _say_last(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
            self._transport.close()

    def pause_writing(self) -> None:
        self._outbox.set_writable(False)

    def resume_writing(self) -> None:
        self._outbox.set_writable(True)

    def eof_received(self) -> bool:
        return False

    def _await(self) -> None:
        """Starts the idle timeout. A thread may be working for the client already; it calls this again when it is
        done."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        assert self._connection is not None
        session = self._connection.session
        patience_ms = find_patience_ms(session.settings, session.status)
        self._is_awaited = bool(patience_ms)
        if patience_ms and not self._is_lost:
            end = partial(self._end_silence, self._inbox.rounds, silence_error(session.status, patience_ms))
            self._idle_timer = self._loop.call_later(patience_ms / _MS, end)

    def _end_silence(self, rounds: int, problem: errors.Error) -> None:
        if self._inbox.occupy(rounds):
            self._server_context.run(lambda: self._part(problem))

    def connection_lost(self, problem: Exception | None) -> None:
        self._login_timer.cancel()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._outbox.lose()
        self._is_lost = True
        if not self._is_handed_over or self._is_parted:
            self._server_context.leave(self)
        if not self._is_handed_over:
            return
        # The statement of a lost client is cancelled; a thread closes its session.
        self._server_context.cut(self)
        if self._inbox.end():
            self._server_context.run(self._work)

    def _leave(self) -> None:
        self._is_parted = True
        if self._is_lost:
            self._server_context.leave(self)

    def abort(self) -> None:
        """Closes the connection without sending pending output."""
        self._transport.abort()

    def _resume(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._transport.resume_reading)

    def matches(self, secret: bytes) -> bool:
        return hmac.compare_digest(secret, self._secret)

    def cancel(self) -> None:
        if self._connection is not None:
            self._connection.cancel()

    def end_overdue(self) -> None:
        """Cancels a statement that should have ended again, and closes the connection if it did not stop in time. Its
        thread closes the session when the statement has ended."""
        connection = self._connection
        if connection is None or self._is_lost or self._is_refused or not connection.stopping_us:
            return
        stop_ms = self._server_context.limits.stop_ms
        if stop_ms and connection.stopping_us > stop_ms * _MS:
            self._is_refused = True
            self._say_last(error_report(errors.StatementNotStopped(ms=stop_ms), "FATAL"))
        else:
            self._server_context.cut(self)

    def stop(self, at_once: bool) -> None:
        """The server is stopping: idle clients are disconnected now, others when their statement or transaction is
        done, or `at_once`."""
        if not self._is_handed_over:
            self._transport.abort()
        elif at_once:
            if self._inbox.end():
                self._server_context.run(self._work)
            self._server_context.cut(self)
        elif self._inbox.occupy():
            self._server_context.run(self._work)

    # On a thread.

    def _follow(self, follow: Callable[[], object], startup: m.Startup) -> None:
        problem: errors.Error | None = None
        try:
            follow()
        except errors.Error as error:
            problem = error
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin_held, startup, problem)

    def _open(self) -> None:
        try:
            link = ClientLink(self._show_notice, self._end, self._address, self._port)
            session = Session(self._server_context.node, self._login.user, self._login.database, link)
        except errors.Error as error:
            self._log.note_refusal(error)
            self._part(error)
            return
        log = replace(self._log, session=session.client.actor)
        self._connection = ClientConnection(
            session, self._inbox, self._outbox, self._server_context.limits.statements_max, log
        )
        self.number = session.client.actor
        self._server_context.enroll(self, self.number)
        try:
            session.check_login()
            self._login.check_current()
            self._connection.begin(self._login.settings, m.backend_key(self.number, self._secret))
        except errors.Error as error:
            self._log.note_refusal(error)
            self._part(error)
            return
        way = "trust" if self._login.auth_config.trust else "password"
        log.note_login(way, self._is_secure, session.settings.get("application_name"))
        self._is_logged_in = True
        self._work()

    def _end(self, problem: errors.Error) -> None:
        """Another session ends this one: as if its client had gone, with an error as the last message."""
        self._last_problem = problem
        if self._inbox.end():
            self._server_context.run(self._work)

    def _show_notice(self, notice: str) -> bool:
        return self._outbox.send_early(notice_report(notice))

    def _work(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            while connection.work():
                if not self._server_context.is_stopping or connection.session.status is not TransactionStatus.IDLE:
                    self._rest(connection.session)
                    return
                # The client is idle and the server stops: disconnect it.
                if not self._inbox.occupy():
                    return
                break
            self._part(errors.ServerStops() if self._server_context.is_stopping else self._last_problem)
        except WouldWait:
            raise
        except BaseException:
            self._part(None)
            raise

    def _rest(self, session: Session) -> None:
        """No work is left. The loop is notified only if an idle timeout has to be set or removed."""
        if find_patience_ms(session.settings, session.status) or self._is_awaited:
            self._is_awaited = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._await)

    def _part(self, error: errors.Error | None) -> None:
        """Closes the session, and then the connection."""
        if self._is_logged_in:
            self._log.note_end(error)
        try:
            if self._connection is not None:
                self._connection.session.close()
        finally:
            with suppress(errors.Error, RuntimeError):
                self._outbox.close(error_report(error, "FATAL") if error is not None else b"")
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._leave)


def _peer(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """The address and port of the client; a socket of the file system has none."""
    match transport.get_extra_info("peername"):
        case (str(address), int(port), *_):
            return address, port
        case _:
            return "", -1


def _keep_alive(transport: asyncio.Transport) -> None:
    """Makes the operating system detect dead peers."""
    peer = transport.get_extra_info("socket")
    if peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
        for level, name, value in _KEEP_ALIVE:
            peer.setsockopt(level, name, value)


def _number(transport: asyncio.Transport) -> int:
    opened = transport.get_extra_info("socket")
    return -1 if opened is None else int(opened.fileno())
