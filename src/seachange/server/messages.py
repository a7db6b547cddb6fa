"""The messages of PostgreSQL's protocol 3.0: splitting a stream into messages, parsing them, and building responses.

**Invariant:** a length sent by a client is checked against its limit, and nothing is read beyond a message's end. For
any input, parsing ends with a value or with a ProtocolViolation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from seachange import errors

PROTOCOL_MAJOR = 3
SSL_REQUEST = (1234, 5679)
GSS_REQUEST = (1234, 5680)
CANCEL_REQUEST = (1234, 5678)

STARTUP_BYTES_MAX = 10_000
# Before authentication a client has no reason to send much.
LOGIN_BYTES_MAX = 65_536

_COLUMNS_MAX = (1 << 15) - 1
_INT16, _INT32, _UINT32 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">I")
_NULL = b"\xff\xff\xff\xff"
# The header of every message after start-up: its type byte and its length.
HEAD_BYTES = 5
_COPY_DATA = ord("d")
_ROW_HEAD = struct.Struct(">cih")
# Precomputed encodings of short lengths.
_LENGTHS_KEPT = 256
_LENGTHS = tuple(map(_INT32.pack, range(_LENGTHS_KEPT)))
# Fields of errors that name an object, and the letter of the message field.
_OBJECT_FIELDS = (("relation", "t"), ("column", "c"), ("constraint", "n"))
# Errors that drivers recognise by the PostgreSQL function that raises them.
_ROUTINES: dict[type[errors.Error], str] = {errors.ResultTypeChanged: "RevalidateCachedQuery"}


class MessageFrame(NamedTuple):
    """A message as received: `kind` is its type byte, empty for start-up packets."""

    kind: bytes
    body: bytes


class FrameReader:
    """Splits a stream into messages; the first one has no type byte."""

    def __init__(self) -> None:
        self._data = bytearray()
        # The start of the next message; the bytes before it are dropped when all complete messages have been taken.
        self._at = 0
        self.is_started = False
        self.bytes_max = LOGIN_BYTES_MAX

    @property
    def pending_bytes(self) -> int:
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> MessageFrame | None:
        data, at = self._data, self._at
        body = at + (HEAD_BYTES if self.is_started else HEAD_BYTES - 1)
        if len(data) < body:
            self._drop()
            return None
        (length,) = _INT32.unpack_from(data, body - 4)
        limit = self.bytes_max if self.is_started else STARTUP_BYTES_MAX
        if not 4 <= length <= limit:
            raise errors.ProtocolViolation(detail=f"invalid message length {length}: it must be between 4 and {limit}")
        end = body - 4 + length
        if len(data) < end:
            self._drop()
            return None
        self._at = end
        if self.is_started and data[at] == _COPY_DATA:
            return MessageFrame(b"d", self._join_copied(body))
        return MessageFrame(bytes(data[at : body - 4]), bytes(data[body:end]))

    def _join_copied(self, body: int) -> bytes:
        """The data of a CopyData message and of those that follow it: the boundaries between them mean nothing, and
        many clients send a message for each row."""
        data, end = self._data, self._at
        parts = [data[body:end]]
        while len(data) >= end + HEAD_BYTES and data[end] == _COPY_DATA:
            (length,) = _INT32.unpack_from(data, end + 1)
            body, end = end + HEAD_BYTES, end + 1 + length
            if not 4 <= length <= self.bytes_max or len(data) < end:
                break
            parts.append(data[body:end])
            self._at = end
        return b"".join(parts)

    def _drop(self) -> None:
        del self._data[: self._at]
        self._at = 0


class Body:
    """Reads the fields of a message in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise errors.ProtocolViolation(detail="insufficient data left in message")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int16s(self) -> tuple[int, ...]:
        """Their count, and so many of them."""
        count = self.count()
        return struct.unpack(f">{count}h", self.take(2 * count))

    def count(self) -> int:
        """A count, which PostgreSQL sends as an unsigned 16-bit integer."""
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def uint32(self) -> int:
        return int(_UINT32.unpack(self.take(4))[0])

    def text(self) -> str:
        end = self._data.find(b"\0", self._position)
        if end < 0:
            raise errors.ProtocolViolation(detail="invalid string in message")
        data, self._position = self._data[self._position : end], end + 1
        return decode_text(data) if data else ""

    def value(self) -> bytes | None:
        size = int.from_bytes(self.take(4), "big", signed=True)
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._position)

    def end(self) -> None:
        if self._position != len(self._data):
            raise errors.ProtocolViolation(detail="invalid message format: extra data after the last field")


def decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise errors.InvalidByteSequence(bytes=data[problem.start : problem.start + 4].hex(" ")) from None


# Client messages.


@dataclass(frozen=True, slots=True)
class Startup:
    major: int
    minor: int
    parameters: dict[str, str]
    # For the requests that only look like a start-up packet.
    rest: bytes = b""


def read_startup(body: bytes) -> Startup:
    reader = Body(body)
    major, minor = reader.count(), reader.count()
    if major != PROTOCOL_MAJOR:
        return Startup(major, minor, {}, reader.rest())
    parameters: dict[str, str] = {}
    while name := reader.text():
        parameters[name] = reader.text()
    reader.end()
    return Startup(major, minor, parameters)


@dataclass(frozen=True, slots=True)
class Cancel:
    process: int
    secret: bytes


def read_cancel(rest: bytes) -> Cancel:
    reader = Body(rest)
    process = reader.int32()
    return Cancel(process, reader.rest())


class Parse(NamedTuple):
    name: str
    text: str
    oids: tuple[int, ...]


def read_parse(body: bytes) -> Parse:
    reader = Body(body)
    name, text = reader.text(), reader.text()
    oids = tuple(reader.uint32() for _ in range(reader.count()))
    reader.end()
    return Parse(name, text, oids)


class Bind(NamedTuple):
    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


def read_bind(body: bytes) -> Bind:
    reader = Body(body)
    portal, statement = reader.text(), reader.text()
    formats = reader.int16s()
    values = tuple([reader.value() for _ in range(reader.count())])
    result_formats = reader.int16s()
    reader.end()
    return Bind(portal, statement, spread_formats(formats, len(values)), values, result_formats)


_FORMATS = frozenset({0, 1})


def spread_formats(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """No format means text for all; a single one applies to all."""
    if not formats:
        formats = (0,) * count
    elif len(formats) == 1:
        formats = (formats[0],) * count
    if len(formats) != count:
        raise errors.ProtocolViolation(detail=f"{len(formats)} formats for {count} values")
    if not _FORMATS.issuperset(formats):
        raise errors.InvalidParameterValue(detail="a format is 0 for text or 1 for binary")
    return tuple(formats)


class Named(NamedTuple):
    """The target of Describe and Close: a statement (S) or a portal (P)."""

    kind: str
    name: str


_UNNAMED_PORTAL = (b"P\0", Named("P", ""))


def read_named(body: bytes) -> Named:
    if body == _UNNAMED_PORTAL[0]:
        return _UNNAMED_PORTAL[1]
    reader = Body(body)
    kind, name = reader.take(1), reader.text()
    reader.end()
    if kind not in (b"S", b"P"):
        raise errors.ProtocolViolation(detail=f"{kind!r} is neither a statement nor a portal")
    return Named(kind.decode(), name)


class Execute(NamedTuple):
    portal: str
    rows_max: int


# Of the unnamed portal, all rows: what drivers send.
_EXECUTE_ALL = (bytes(5), Execute("", 0))


def read_execute(body: bytes) -> Execute:
    if body == _EXECUTE_ALL[0]:
        return _EXECUTE_ALL[1]
    reader = Body(body)
    portal, rows_max = reader.text(), reader.int32()
    reader.end()
    return Execute(portal, max(rows_max, 0))


def read_text(body: bytes) -> str:
    reader = Body(body)
    text = reader.text()
    reader.end()
    return text


@dataclass(frozen=True, slots=True)
class SaslStart:
    mechanism: str
    data: bytes | None


def read_sasl_start(body: bytes) -> SaslStart:
    reader = Body(body)
    mechanism, data = reader.text(), reader.value()
    reader.end()
    return SaslStart(mechanism, data)


# Server messages.


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + _INT32.pack(len(body) + 4) + body


def _text(value: str) -> bytes:
    return value.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


AUTHENTICATED = message(b"R", _INT32.pack(0))
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
PORTAL_SUSPENDED = message(b"s")
EMPTY_QUERY = message(b"I")
COPY_DONE = message(b"c")
SSL_ACCEPTED, SSL_REFUSED = b"S", b"N"

_SASL_START, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12


def sasl_start(mechanisms: Iterable[str]) -> bytes:
    return message(b"R", _INT32.pack(_SASL_START) + b"".join(map(_text, mechanisms)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(_SASL_CONTINUE) + data)


def sasl_final(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(_SASL_FINAL) + data)


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    return message(b"v", _INT32.pack(minor) + _INT32.pack(len(unknown)) + b"".join(map(_text, unknown)))


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _text(name) + _text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    return message(b"K", _INT32.pack(process) + secret)


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def command_complete(tag: str) -> bytes:
    return message(b"C", _text(tag))


def report(kind: bytes, fields: Iterable[tuple[str, str]]) -> bytes:
    """An error (E) or a notice (N)."""
    return message(kind, b"".join(code.encode() + _text(value) for code, value in fields) + b"\0")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a row description; `width` is -1 if it varies, `table` and `attribute` are 0 for an expression."""

    name: str
    oid: int
    width: int
    modifier: int
    format: int
    table: int = 0
    attribute: int = 0


_FIELD = struct.Struct(">IhIhih")


def _column_count(count: int) -> bytes:
    if count > _COLUMNS_MAX:
        raise errors.ProgramLimitExceeded(detail=f"a result can have at most {_COLUMNS_MAX} columns, not {count}")
    return _INT16.pack(count)


def row_description(fields: Sequence[Field]) -> bytes:
    parts = [_column_count(len(fields))]
    for field in fields:
        described = (field.table, field.attribute, field.oid, field.width, field.modifier, field.format)
        parts += (_text(field.name), _FIELD.pack(*described))
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", len(oids).to_bytes(2, "big") + b"".join(map(_UINT32.pack, oids)))


def peek_bound(body: bytes) -> str:
    """The statement that a Bind names, without parsing the rest."""
    _, _, rest = body.partition(b"\0")
    return rest.partition(b"\0")[0].decode(errors="replace")


def data_rows(rows: Iterable[Sequence[Any]], encoders: Sequence[Callable[[Any], bytes]]) -> bytes:
    """A message for each row; `encoders` encode the values that are not NULL."""
    pack, head = _INT32.pack, _ROW_HEAD.pack
    count = len(encoders)
    parts: list[bytes] = []
    for row in rows:
        size = 6
        start = len(parts)
        parts.append(b"")
        for value, encode in zip(row, encoders, strict=True):
            if value is None:
                parts.append(_NULL)
                size += 4
            else:
                encoded = encode(value)
                length = len(encoded)
                parts.append(_LENGTHS[length] if length < _LENGTHS_KEPT else pack(length))
                parts.append(encoded)
                size += 4 + length
        parts[start] = head(b"D", size, count)
    return b"".join(parts)


def copy_response(kind: bytes, columns: int, form: int) -> bytes:
    """Begins COPY in (G) or out (H), in a text format or in binary."""
    return message(kind, bytes([form]) + _column_count(columns) + _INT16.pack(form) * columns)


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


def error_report(error: errors.Error, severity: str = "ERROR") -> bytes:
    fields = [*_head(severity, error.sqlstate, str(error))]
    if error.detail:
        fields.append(("D", error.detail))
    if error.hint:
        fields.append(("H", error.hint))
    if error.position is not None:
        fields.append(("P", str(error.position)))
    fields += [(letter, str(error.fields[name])) for name, letter in _OBJECT_FIELDS if error.fields.get(name)]
    routine = _ROUTINES.get(type(error))
    if routine is not None:
        fields.append(("R", routine))
    return report(b"E", fields)


def notice_report(text: str) -> bytes:
    return report(b"N", _head("NOTICE", "00000", text))


def _head(severity: str, code: str, text: str) -> tuple[tuple[str, str], ...]:
    return ("S", severity), ("V", severity), ("C", code), ("M", text)
