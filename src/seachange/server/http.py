"""Pages over HTTP: health and metrics, the catalog of Iceberg tables, and the console.

**Invariant:** the event loop answers; pages that read the catalog run on one thread, those of Iceberg and of the
console on two others each, so that requests never use more.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from seachange import errors
from seachange.engine.context.problem_log import log_internal
from seachange.engine.node.node import Node
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.threads import ThreadPool
from seachange.server.console.pages import ROOT as CONSOLE
from seachange.server.console.pages import ConsolePages
from seachange.server.http_message import JSON, HttpRequest, HttpResponse, read_head
from seachange.server.iceberg_pages import ROOT, IcebergPages
from seachange.server.metrics import CONTENT_TYPE, collect_metrics, write_families
from seachange.server.server import Server

_HEAD_BYTES_MAX = 8_192
_SECONDS_MAX = 10.0
# An export of a large table takes longer than a page, and a page that shows what is new stays open.
_SECONDS_MAX_BY_ROOM = {ROOT: 120.0, CONSOLE: 900.0}
_CONNECTIONS_MAX = 64


class Monitor:
    """Serves the pages about one server."""

    def __init__(self, node: Node, server: Server) -> None:
        self._node = node
        self._server = server
        self._asking = ThreadPool(1, "seachange-http")
        self._iceberg = IcebergPages(node, server.auth_config, server.throttle)
        self._console = ConsolePages(node, server.auth_config, server.throttle)
        self._listener: asyncio.Server | None = None
        self._open = 0
        # Pages that read the catalog are answered by a thread.
        self._pages: dict[str, Callable[[], HttpResponse]] = {"/readyz": self._readiness, "/metrics": self._metrics}

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Returns the port."""
        try:
            self._listener = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES_MAX, ssl=tls)
        except OSError as problem:
            raise errors.InputOutputError(
                action="listen on", file=f"{host}:{port}", detail=problem.strerror or problem
            ) from problem
        self._console.start()
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._console.stop()
        await asyncio.to_thread(self._asking.shutdown)
        await asyncio.to_thread(self._iceberg.close)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _CONNECTIONS_MAX:
                writer.write(await self._answer_or_fail(reader, writer))
                async with asyncio.timeout(_SECONDS_MAX):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # The client was too slow, or has disconnected.
            pass
        finally:
            self._open -= 1
            with suppress(OSError):
                writer.close()

    async def _answer_or_fail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            return await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            raise
        except Exception as failure:  # noqa: BLE001 - the outer edge: the client gets the id of the entry in the log
            id_ = log_internal(self._node.parts.log, SYSTEM_ENTROPY, failure, "a page over HTTP")
            message = json.dumps({"message": f"internal error (error id {id_})"}) + "\n"
            return HttpResponse(HTTPStatus.INTERNAL_SERVER_ERROR, message, JSON).encode(with_body=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return HttpResponse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too long\n").encode(with_body=True)
        address, is_secure = writer.get_extra_info("peername")[0], writer.get_extra_info("ssl_object") is not None
        request = read_head(head, address, is_secure)
        if request is None:
            return HttpResponse(HTTPStatus.BAD_REQUEST, "not HTTP/1\n").encode(with_body=True)
        room = request.parts[0]
        async with asyncio.timeout(_SECONDS_MAX_BY_ROOM.get(room, _SECONDS_MAX)):
            if room == ROOT:
                found: HttpResponse | None = await self._iceberg.respond(request, reader)
            elif room in ("", CONSOLE):
                found = await self._console.respond(request, reader, writer)
            else:
                found = await self._respond(request)
        return found.encode(with_body=request.method != "HEAD") if found is not None else b""

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only\n")
        return await self._page(request.path)

    async def _page(self, path: str) -> HttpResponse:
        if path == "/healthz":
            return HttpResponse(HTTPStatus.OK, "ok\n")
        page = self._pages.get(path)
        if page is None:
            return HttpResponse(HTTPStatus.NOT_FOUND, "the pages are /, /healthz, /readyz, /metrics and /iceberg\n")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._asking, page)
        except errors.Error as problem:
            return _unavailable(f"{problem.sqlstate}: {problem}")

    # On the thread.

    def _readiness(self) -> HttpResponse:
        if self._server.is_stopping:
            return _unavailable("the server is stopping")
        if self._node.epoch.ended:
            return _unavailable("the node's epoch has ended; a new one begins with the next heartbeat")
        facts = {"node": self._node.name, "epoch": self._node.epoch.epoch, "head": self._node.parts.catalog.head()}
        return HttpResponse(HTTPStatus.OK, json.dumps({"ready": True, **facts}) + "\n", JSON)

    def _metrics(self) -> HttpResponse:
        families = collect_metrics(self._node, self._server.client_count, self._server.stranger_count)
        return HttpResponse(HTTPStatus.OK, write_families(families), CONTENT_TYPE)


def _unavailable(reason: str) -> HttpResponse:
    return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, json.dumps({"ready": False, "reason": reason}) + "\n", JSON)
