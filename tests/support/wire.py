"""PostgreSQL's protocol by hand, for what no driver does."""

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST

Message = tuple[bytes, bytes]


def packet(body: bytes) -> bytes:
    return struct.pack(">i", len(body) + 4) + body


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + packet(body)


def startup(version: tuple[int, int] = (3, 0), **parameters: str) -> bytes:
    pairs = {"user": "seachange", **parameters}
    return packet(struct.pack(">hh", *version) + b"".join(f"{k}\0{v}\0".encode() for k, v in pairs.items()) + b"\0")


def parse(text: str, name: str = "", oids: Sequence[int] = ()) -> bytes:
    body = f"{name}\0{text}\0".encode() + struct.pack(">h", len(oids)) + b"".join(struct.pack(">I", o) for o in oids)
    return message(b"P", body)


def bind(values: Sequence[bytes | None] = (), portal: str = "", statement: str = "", formats: bytes = b"\0\0") -> bytes:
    body = f"{portal}\0{statement}\0".encode() + b"\0\0" + struct.pack(">h", len(values))
    for value in values:
        body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return message(b"B", body + formats)


def describe(kind: str = "P", name: str = "") -> bytes:
    return message(b"D", f"{kind}{name}\0".encode())


def execute(portal: str = "", rows_max: int = 0) -> bytes:
    return message(b"E", f"{portal}\0".encode() + struct.pack(">i", rows_max))


def query(text: str) -> bytes:
    return message(b"Q", text.encode() + b"\0")


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def fields(body: bytes) -> dict[str, str]:
    """Of an error or a notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


class Wire:
    """A connection on which messages are sent and received one by one."""

    def __init__(self, port: int, version: tuple[int, int] = (3, 0), **parameters: str) -> None:
        self.socket = socket.create_connection((HOST, port), PATIENCE_S)
        self._data = b""
        self.send(startup(version, **parameters))
        self.greeting = self.until(b"Z")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def receive(self) -> Message | None:
        """None: the server has closed the connection."""
        while len(self._data) < 5 or len(self._data) < 1 + struct.unpack(">i", self._data[1:5])[0]:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._data += data
        end = 1 + struct.unpack(">i", self._data[1:5])[0]
        found, self._data = self._data[:end], self._data[end:]
        return found[:1], found[5:]

    def until(self, *kinds: bytes) -> list[Message]:
        """All up to the first of one of these kinds, or up to the end."""
        found: list[Message] = []
        while not found or found[-1][0] not in kinds:
            received = self.receive()
            if received is None:
                break
            found.append(received)
        return found

    def round(self, *data: bytes) -> list[Message]:
        """What is answered up to ReadyForQuery."""
        self.send(*data)
        return self.until(b"Z")

    def kinds(self, *data: bytes) -> str:
        return "".join(kind.decode() for kind, _ in self.round(*data))

    def code(self, *data: bytes) -> str | None:
        """The SQLSTATE of the first error up to ReadyForQuery, or to the end."""
        return next((fields(body)["C"] for kind, body in self.round(*data) if kind == b"E"), None)

    def rows(self, text: str) -> list[list[bytes | None]]:
        return [_row(body) for kind, body in self.round(query(text)) if kind == b"D"]


def _row(body: bytes) -> list[bytes | None]:
    position, values = 2, []
    for _ in range(struct.unpack(">h", body[:2])[0]):
        (size,) = struct.unpack(">i", body[position : position + 4])
        position += 4
        values.append(None if size < 0 else body[position : position + size])
        position += max(size, 0)
    return values
