"""Health and metrics over HTTP: three read-only pages.

**Invariant:** the event loop answers; pages that read the catalog run on one thread, so that requests never use more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from seachange import errors
from seachange.engine.node.node import Node
from seachange.server.metrics import CONTENT_TYPE, collect_metrics, write_families
from seachange.server.server import Server

_HEAD_BYTES_MAX = 8_192
_SECONDS_MAX = 10.0
_CONNECTIONS_MAX = 64
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: HTTPStatus
    text: str
    kind: str = "text/plain; charset=utf-8"

    def encode(self, with_body: bool) -> bytes:
        body = self.text.encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nContent-Type: {self.kind}\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (body if with_body else b"")


class Monitor:
    """Serves the pages about one server."""

    def __init__(self, node: Node, server: Server) -> None:
        self._node = node
        self._server = server
        self._asking = ThreadPoolExecutor(1, "seachange-http")
        self._listener: asyncio.Server | None = None
        self._open = 0
        # Pages that read the catalog are answered by a thread.
        self._pages: dict[str, Callable[[], HttpResponse]] = {"/readyz": self._readiness, "/metrics": self._metrics}

    async def start(self, host: str, port: int) -> int:
        """Returns the port."""
        try:
            self._listener = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES_MAX)
        except OSError as problem:
            raise errors.InputOutputError(
                action="listen on", file=f"{host}:{port}", detail=problem.strerror or problem
            ) from problem
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        await asyncio.to_thread(self._asking.shutdown)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                if self._open <= _CONNECTIONS_MAX:
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # The client was too slow, or has disconnected.
            pass
        finally:
            self._open -= 1
            with suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return HttpResponse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too long\n").encode(with_body=True)
        words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return HttpResponse(HTTPStatus.BAD_REQUEST, "not HTTP/1\n").encode(with_body=True)
        method, path, _ = words
        if method not in ("GET", "HEAD"):
            return HttpResponse(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only\n").encode(with_body=True)
        return (await self._page(path.partition("?")[0])).encode(with_body=method == "GET")

    async def _page(self, path: str) -> HttpResponse:
        if path == "/healthz":
            return HttpResponse(HTTPStatus.OK, "ok\n")
        page = self._pages.get(path)
        if page is None:
            return HttpResponse(HTTPStatus.NOT_FOUND, "the pages are /healthz, /readyz and /metrics\n")
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
        return HttpResponse(HTTPStatus.OK, json.dumps({"ready": True, **facts}) + "\n", _JSON)

    def _metrics(self) -> HttpResponse:
        families = collect_metrics(self._node, self._server.client_count, self._server.stranger_count)
        return HttpResponse(HTTPStatus.OK, write_families(families), CONTENT_TYPE)


def _unavailable(reason: str) -> HttpResponse:
    return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, json.dumps({"ready": False, "reason": reason}) + "\n", _JSON)
