"""The pages of the console and what their script asks for.

**Invariant:** the files of the page contain no data, and are served without a log-in; everything else needs the cookie
of one. What changes something is a POST from the console's own page, and never a GET.

**Invariant:** an answer depends on the rights of the role at the catalog's head, because it comes from a session of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from seachange import errors
from seachange.engine.node.node import Node
from seachange.model.schema.objects import DEFAULT_DATABASE
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.threads import ThreadPool
from seachange.server.client_log import ClientLog
from seachange.server.console.access import (
    SECURITY_HEADERS,
    clear_cookie,
    is_from_own_site,
    is_proven,
    proof_of,
    set_cookie,
    token_of,
)
from seachange.server.console.load_history import LoadHistory
from seachange.server.console.runs import ConsoleChange, ConsoleRuns
from seachange.server.console.views import ACTIONS, APPLICATION, VIEWS
from seachange.server.http_message import JSON, HttpRequest, HttpResponse
from seachange.server.limits import REFUSAL_SECONDS, Throttle
from seachange.server.login import AuthConfig
from seachange.server.tokens import Tokens
from seachange.server.web_access import BodyRefused, read_body, refuse_way

ROOT = "console"
_THREADS = 2
_WAIT_US_MAX = 10_000_000
_US = 1_000_000
_SAMPLE_SECONDS = 1.0
# A page is sent what is new this often, for this long; then its browser connects again.
_EVENT_SECONDS = 1.0
_STREAM_EVENTS_MAX = 600
_STREAMS_MAX = 16
# The views whose changes are sent to a page while it is open.
_LIVE_VIEWS = ("jobs", "running_stages")
_EVENT_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
)

_FILES = {
    "index.html": "text/html; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "pages.js": "text/javascript; charset=utf-8",
    "picture.js": "text/javascript; charset=utf-8",
}


class ConsolePages:
    def __init__(self, node: Node, auth_config: AuthConfig, throttle: Throttle) -> None:
        self._node = node
        self._auth_config = auth_config
        self._throttle = throttle
        self._tokens = Tokens(auth_config, SYSTEM_CLOCK, "console")
        self._runs = ConsoleRuns(node)
        self._load = LoadHistory(node.parts.meters, lambda: node.maintenance.compactions)
        self._threads = ThreadPool(_THREADS, "seachange-console")
        # The requests of open pages.
        self._streams: set[asyncio.Task[Any]] = set()
        self._sampling: asyncio.Task[None] | None = None
        folder = files("seachange.server.console").joinpath("static")
        self._files = {
            name: HttpResponse(HTTPStatus.OK, folder.joinpath(name).read_text("utf-8"), kind, SECURITY_HEADERS)
            for name, kind in _FILES.items()
        }

    def start(self) -> None:
        self._sampling = asyncio.get_running_loop().create_task(self._sample())

    async def stop(self) -> None:
        tasks = {*self._streams, *((self._sampling,) if self._sampling is not None else ())}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._runs.close)
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    async def _sample(self) -> None:
        while True:
            self._load.sample(SYSTEM_CLOCK.wall_us())
            await asyncio.sleep(_SAMPLE_SECONDS)

    async def respond(
        self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpResponse | None:
        """None if the answer has been written."""
        if request.method in ("GET", "HEAD") and request.parts in (("",), (ROOT,), (ROOT, "")):
            return self._files["index.html"]
        if request.method in ("GET", "HEAD") and len(request.parts) == 2 and request.parts[1] in self._files:
            return self._files[request.parts[1]]
        if request.parts[1:2] != ("api",) or len(request.parts) < 3:
            return _problem(HTTPStatus.NOT_FOUND, "there is no such page")
        refusal = refuse_way(request, self._auth_config.trust)
        if refusal is not None or not is_from_own_site(request):
            return _problem(HTTPStatus.FORBIDDEN, refusal or "the request comes from another site")
        if request.parts[2:] == ("events",) and request.method == "GET":
            return await self._stream(request, writer)
        try:
            given = await _read_json(request, reader) if request.method == "POST" else dict(request.query)
        except BodyRefused as refused:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if refused.is_long else HTTPStatus.BAD_REQUEST
            return _problem(status, str(refused))
        if request.parts[2:] == ("login",):
            return await self._login(request, given)
        return await self._on_thread(partial(self._answer, request, given))

    async def _on_thread(self, work: Callable[[], HttpResponse]) -> HttpResponse:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # Log-in.

    async def _login(self, request: HttpRequest, given: Mapping[str, Any]) -> HttpResponse:
        if request.method != "POST":
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED, "POST only")
        wait_us = self._throttle.admit(request.address, SYSTEM_CLOCK.steady_us(), _WAIT_US_MAX)
        if wait_us is None:
            return _problem(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong passwords: wait a minute")
        await asyncio.sleep(wait_us / _US)
        response = await self._on_thread(partial(self._check, request, given))
        self._note_login(request, given, response.status)
        if response.status is HTTPStatus.UNAUTHORIZED:
            self._throttle.note_failure(request.address, SYSTEM_CLOCK.steady_us())
            await asyncio.sleep(REFUSAL_SECONDS)
        return response

    def _note_login(self, request: HttpRequest, given: Mapping[str, Any], status: HTTPStatus) -> None:
        role, database = str(given.get("user", "")), str(given.get("database") or DEFAULT_DATABASE)
        noted = ClientLog(self._node.parts.log, role, database, request.address)
        if status is HTTPStatus.OK:
            noted.note_login("trust" if self._auth_config.trust else "password", request.is_secure, APPLICATION)
        else:
            noted.note_refusal(errors.InvalidPassword(user=role))

    def _check(self, request: HttpRequest, given: Mapping[str, Any]) -> HttpResponse:
        user, password = str(given.get("user", "")), str(given.get("password", ""))
        database = str(given.get("database") or DEFAULT_DATABASE)
        try:
            # A password changed on another node is known after the head was read.
            self._node.read_head()
            token = self._tokens.issue(user, password)
            if token is None:
                return _problem(HTTPStatus.UNAUTHORIZED, f'password authentication failed for role "{user}"')
            self._runs.check_login(user, database)
        except errors.Error as problem:
            return _error(problem)
        return _json({"user": user}, set_cookie(f"{token}.{database.encode().hex()}", request.is_secure))

    def _identify(self, request: HttpRequest) -> tuple[str, str, str] | None:
        """Token, role and database of a request; None without a valid log-in."""
        cookie = token_of(request)
        token, _, name = cookie.rpartition(".")
        user = self._tokens.find_user(token)
        try:
            return None if user is None else (cookie, user, bytes.fromhex(name).decode())
        except ValueError:
            return None

    # On a thread.

    def _answer(self, request: HttpRequest, given: Mapping[str, Any]) -> HttpResponse:
        try:
            self._node.read_head()
            found = self._identify(request)
            if found is None:
                return _problem(HTTPStatus.UNAUTHORIZED, "log in first")
            token, user, database = found
            if request.method in ("GET", "HEAD"):
                return self._look(request.parts[2:], token, user, database, given)
            if request.method != "POST" or not is_proven(request, token):
                return _problem(HTTPStatus.FORBIDDEN, "the request does not come from the console's page")
            return self._act(request.parts[2:], user, database, given)
        except errors.Error as problem:
            return _error(problem)

    def _look(
        self, parts: tuple[str, ...], token: str, user: str, database: str, given: Mapping[str, Any]
    ) -> HttpResponse:
        match parts:
            case ("me",):
                return _json({"user": user, "database": database, "node": self._node.name, "proof": proof_of(token)})
            case ("load",):
                return _json({"samples": self._load.samples()})
            case ("runs",):
                return _json({"runs": [_shown(change) for change in self._runs.changes_of(user)]})
            case ("view", name) if name in VIEWS:
                return _json(self._runs.query(user, database, VIEWS[name], given))
            case _:
                return _problem(HTTPStatus.NOT_FOUND, "there is no such page")

    def _act(self, parts: tuple[str, ...], user: str, database: str, given: Mapping[str, Any]) -> HttpResponse:
        match parts:
            case ("logout",):
                return _json({}, clear_cookie())
            case ("explain",):
                return _json(self._runs.explain(user, database, str(given.get("text", ""))))
            case ("run",):
                return _json(_shown(self._runs.run(user, database, str(given.get("text", "")))))
            case ("action", name) if name in ACTIONS:
                return _json(self._runs.query(user, database, ACTIONS[name], given))
            case _:
                return _problem(HTTPStatus.NOT_FOUND, "there is no such page")

    # Live updates.

    async def _stream(self, request: HttpRequest, writer: asyncio.StreamWriter) -> HttpResponse | None:
        task = asyncio.current_task()
        if task is None or len(self._streams) >= _STREAMS_MAX:
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open")
        self._streams.add(task)
        try:
            return await self._send_events(request, writer)
        finally:
            self._streams.discard(task)

    async def _send_events(self, request: HttpRequest, writer: asyncio.StreamWriter) -> HttpResponse | None:
        loop = asyncio.get_running_loop()
        sent, begun = "", False
        for _ in range(_STREAM_EVENTS_MAX):
            found = await loop.run_in_executor(self._threads, partial(self._event, request))
            if isinstance(found, HttpResponse):
                # The log-in has ended; a stream that has begun just ends.
                return None if begun else found
            if not begun:
                writer.write(_EVENT_HEAD)
                begun = True
            views, load = found
            # A comment shows whether the page is still there.
            event = f"event: views\ndata: {views}\n\n" if views != sent else ": \n\n"
            writer.write(f"{event}event: load\ndata: {load}\n\n".encode())
            sent = views
            await writer.drain()
            await asyncio.sleep(_EVENT_SECONDS)
        return None

    def _event(self, request: HttpRequest) -> tuple[str, str] | HttpResponse:
        try:
            self._node.read_head()
            found = self._identify(request)
            if found is None:
                return _problem(HTTPStatus.UNAUTHORIZED, "log in first")
            _, user, database = found
            views = {name: self._runs.query(user, database, VIEWS[name], {}) for name in _LIVE_VIEWS}
            return json.dumps(views), json.dumps(self._load.samples()[-1:])
        except errors.Error as problem:
            return _error(problem)


def _shown(change: ConsoleChange) -> Mapping[str, Any]:
    return {"statement": change.statement, "failed": change.failed, "outcome": change.outcome}


async def _read_json(request: HttpRequest, reader: asyncio.StreamReader) -> Mapping[str, Any]:
    """Only JSON: a form of another site cannot send it."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        raise BodyRefused("the body must be JSON", is_long=False)
    try:
        content = json.loads(await read_body(request, reader))
        # Half a character of two halves is no text: nothing could store or compare it.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BodyRefused("the body is not JSON", is_long=False) from None
    if not isinstance(content, dict):
        raise BodyRefused("the body is not a JSON object", is_long=False)
    return content


def _json(content: Mapping[str, Any], *headers: tuple[str, str]) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, json.dumps(content) + "\n", JSON, (*SECURITY_HEADERS, *headers))


def _problem(status: HTTPStatus, message: str) -> HttpResponse:
    return HttpResponse(status, json.dumps({"message": message}) + "\n", JSON, SECURITY_HEADERS)


def _error(problem: errors.Error) -> HttpResponse:
    """An error of SQL: the request was understood."""
    content = {
        "message": str(problem),
        "sqlstate": problem.sqlstate,
        "detail": problem.detail,
        "hint": problem.hint,
    }
    return HttpResponse(HTTPStatus.UNPROCESSABLE_ENTITY, json.dumps(content) + "\n", JSON, SECURITY_HEADERS)
