"""The pages below /iceberg: who may ask, and for what.

**Invariant:** passwords and tokens are accepted over TLS, or from this machine only. Passwords are tried at the rate at
which the PostgreSQL protocol lets an address try them; both share one count of failures.

**Invariant:** where everyone is trusted, only requests to this machine under its own names are answered: a page of a
browser cannot reach the catalog through a name that resolves to this machine.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl

from seachange import errors
from seachange.engine.node.node import Node
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.threads import ThreadPool
from seachange.server.client_log import ClientLog
from seachange.server.http_message import HttpRequest, HttpResponse, json_response
from seachange.server.iceberg_catalog import IcebergCatalog, RequestRefused, problem
from seachange.server.limits import REFUSAL_SECONDS, Throttle
from seachange.server.login import AuthConfig
from seachange.server.tokens import TOKEN_SECONDS, Tokens
from seachange.server.web_access import BodyRefused, read_body, refuse_way

ROOT = "iceberg"
# The largest body: a request for a token.
BODY_BYTES_MAX = 8_192
_VERSION = "v1"
_WAIT_US_MAX = 10_000_000
_THREADS = 2


class IcebergPages:
    def __init__(self, node: Node, auth_config: AuthConfig, throttle: Throttle) -> None:
        self._node = node
        self._auth_config = auth_config
        self._throttle = throttle
        self._tokens = Tokens(auth_config, SYSTEM_CLOCK)
        self._threads = ThreadPool(_THREADS, "seachange-iceberg")

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    async def respond(self, request: HttpRequest, body: asyncio.StreamReader) -> HttpResponse:
        refusal = refuse_way(request, self._auth_config.trust)
        if refusal is not None:
            return _forbidden(refusal)
        if request.parts == (ROOT, _VERSION, "oauth", "tokens"):
            return await self._issue(request, body)
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(self._answer, request))

    # Tokens.

    async def _issue(self, request: HttpRequest, body: asyncio.StreamReader) -> HttpResponse:
        if request.method != "POST":
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "BadRequestException", "POST only")
        try:
            form = _read_form(await read_body(request, body, BODY_BYTES_MAX))
        except BodyRefused as refused:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if refused.is_long else HTTPStatus.LENGTH_REQUIRED
            return _oauth_problem(status, "invalid_request", str(refused))
        user, password = _credentials(request, form or {})
        if form is None or form.get("grant_type") != "client_credentials" or not user:
            return _oauth_problem(
                HTTPStatus.BAD_REQUEST, "unsupported_grant_type", "client_credentials of a role and its password only"
            )
        wait_us = self._throttle.admit(request.address, SYSTEM_CLOCK.steady_us(), _WAIT_US_MAX)
        if wait_us is None:
            return _oauth_problem(HTTPStatus.TOO_MANY_REQUESTS, "slow_down", "too many wrong passwords")
        await asyncio.sleep(wait_us / 1_000_000)
        check = partial(self._check, user, password)
        token = await asyncio.get_running_loop().run_in_executor(self._threads, check)
        noted = ClientLog(self._node.parts.log, user, "", request.address)
        if token is None:
            noted.note_refusal(errors.InvalidPassword(user=user))
            self._throttle.note_failure(request.address, SYSTEM_CLOCK.steady_us())
            await asyncio.sleep(REFUSAL_SECONDS)
            return _oauth_problem(HTTPStatus.UNAUTHORIZED, "invalid_client", "password authentication failed")
        noted.note_login("password", request.is_secure, "iceberg")
        content = {"access_token": token, "token_type": "bearer", "expires_in": TOKEN_SECONDS}
        kind = "urn:ietf:params:oauth:token-type:access_token"
        return json_response(HTTPStatus.OK, {**content, "issued_token_type": kind})

    # On a thread.

    def _check(self, user: str, password: str) -> str | None:
        """A password changed on another node is known after the head was read."""
        self._node.read_head()
        return self._tokens.issue(user, password)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            self._node.read_head()
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            user = self._tokens.find_user(token.strip()) if scheme.lower() == "bearer" else None
            if user is None:
                return problem(HTTPStatus.UNAUTHORIZED, "NotAuthorizedException", "a token is required")
            if request.parts[1:2] != (_VERSION,):
                return problem(HTTPStatus.NOT_FOUND, "NoSuchEndpointException", "there is no such endpoint")
            return IcebergCatalog(self._node, user).answer(request)
        except RequestRefused as refused:
            return refused.response
        except errors.Error as found:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailableException", str(found))


def _read_form(body: bytes) -> dict[str, str] | None:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return None
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


def _credentials(request: HttpRequest, form: Mapping[str, str]) -> tuple[str, str]:
    """Of the form, or of the header by which DuckDB sends them."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if "client_id" in form or scheme.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        user, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return user, password


def _forbidden(message: str) -> HttpResponse:
    return problem(HTTPStatus.FORBIDDEN, "ForbiddenException", message)


def _oauth_problem(status: HTTPStatus, error: str, description: str) -> HttpResponse:
    return json_response(status, {"error": error, "error_description": description})
