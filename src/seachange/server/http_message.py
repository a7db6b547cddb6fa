"""HTTP requests and responses, as far as the pages of the server need them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

JSON = "application/json"
_HTTP_1 = "HTTP/1."


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`parts` are the segments of the path, decoded; headers have lower-case names. `address` is the client's."""

    method: str
    path: str
    parts: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    address: str = ""
    is_secure: bool = False


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: HTTPStatus
    text: str
    kind: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self, with_body: bool) -> bytes:
        body = self.text.encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nContent-Type: {self.kind}\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n{more}Connection: close\r\n\r\n"
        )
        return head.encode() + (body if with_body else b"")


def json_response(status: HTTPStatus, content: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(status, json.dumps(content) + "\n", JSON)


def read_head(head: bytes, address: str = "", is_secure: bool = False) -> HttpRequest | None:
    """None if it is not HTTP/1.

    >>> found = read_head(b"GET /a%20b/c?x=1 HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n")
    >>> found.parts, found.query, found.headers
    (('a b', 'c'), {'x': '1'}, {'host': 'here'})
    """
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith(_HTTP_1):
        return None
    try:
        target = urlsplit(words[1])
        query = dict(parse_qsl(target.query, max_num_fields=20))
    except ValueError:
        return None
    parts = tuple(unquote(part, errors="replace") for part in target.path.split("/")[1:])
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name.lower() in headers:
            # A header that is given twice may mean one thing here and another to a proxy.
            return None
        headers[name.lower()] = value.strip()
    return HttpRequest(words[0], target.path, parts, query, headers, address, is_secure)
