"""What the pages for people and programs have in common: over which way a request may come, and its body."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from seachange.server.http_message import HttpRequest

# The largest body: a password, or a schema change.
BODY_BYTES_MAX = 65_536
_BODY_SECONDS_MAX = 10.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class BodyRefused(Exception):
    """A body that is not read. `is_long`: because it is too long."""

    def __init__(self, reason: str, is_long: bool) -> None:
        super().__init__(reason)
        self.is_long = is_long


def refuse_way(request: HttpRequest, trust: bool) -> str | None:
    """Why passwords and rows are not exchanged over the connection of this request; None if they are."""
    is_local = request.address in _LOOPBACK
    if trust:
        # A page of a browser must not reach the server through a name that resolves to this machine.
        if not is_local or host_name(request) not in _LOOPBACK:
            return "without passwords these pages are for clients of this machine only"
    elif not (is_local or request.is_secure):
        return "passwords and tokens are accepted over TLS only: use serve --http-tls"
    return None


def host_name(request: HttpRequest) -> str | None:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None


async def read_body(request: HttpRequest, reader: asyncio.StreamReader, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    size = request.headers.get("content-length", "")
    if not size.isdecimal() or len(size) > 9 or "transfer-encoding" in request.headers:
        raise BodyRefused("Content-Length is required", is_long=False)
    if int(size) > bytes_max:
        raise BodyRefused("the request is too long", is_long=True)
    async with asyncio.timeout(_BODY_SECONDS_MAX):
        return await reader.readexactly(int(size))
