"""The text formats of COPY: lines of CSV or of PostgreSQL's text format to fields and back. A field is text, or None.

**Invariant:** a record is never longer than `RECORD_CHARS_MAX`, so that a missing quote does not read the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from seachange import errors
from seachange.model.statements import CopyStream

RECORD_CHARS_MAX = 16 << 20

Fields = list[str | None]

_QUOTE = '"'
_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_SPECIAL = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


class Lines(Protocol):
    """A file, or the rest of one."""

    def readline(self, limit: int, /) -> str: ...


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """`csv`: CSV as PostgreSQL reads and writes it; `binary`: values in binary format (`copy_binary`), without other
    options; otherwise PostgreSQL's text format."""

    csv: bool
    delimiter: str
    null: str
    header: bool = False
    binary: bool = False


BINARY_FORMAT = CopyFormat(csv=False, delimiter="", null="", binary=True)


def copy_format(name: str, header: bool, delimiter: str | None, null: str | None) -> CopyFormat:
    if name not in ("csv", "text"):
        raise errors.InvalidSetting(name="format", value=name)
    csv = name == "csv"
    chosen = delimiter if delimiter is not None else ("," if csv else "\t")
    if len(chosen) != 1 or chosen in '\r\n\\"' or (not csv and chosen.isalnum()):
        raise errors.InvalidSetting(name="delimiter", value=chosen)
    marker = null if null is not None else ("" if csv else "\\N")
    if "\n" in marker or "\r" in marker or chosen in marker or (csv and _QUOTE in marker):
        raise errors.InvalidSetting(name="null", value=marker)
    return CopyFormat(csv, chosen, marker, header)


def stream_format(copy: CopyStream) -> CopyFormat:
    if copy.binary:
        return BINARY_FORMAT
    return copy_format("csv" if copy.csv else "text", copy.header, copy.delimiter, copy.null)


def read_records(file: Lines, format_: CopyFormat, lines: int = 0) -> Iterator[tuple[int, Fields]]:
    """The records with the numbers of their first lines, after `lines` that were already read; the header is
    skipped."""
    number = lines
    first = True
    while line := _read_line(file, number + 1):
        start = number + 1
        record, number = _read_rest(file, format_, line, start)
        text = record.rstrip("\r\n") if not record.endswith("\n") else record[:-1].removesuffix("\r")
        if text == "\\.":
            return
        if not (first and format_.header):
            yield start, split_csv(text, format_, start) if format_.csv else _split_text(text, format_, start)
        first = False


def _read_rest(file: Lines, format_: CopyFormat, line: str, start: int) -> tuple[str, int]:
    """The record that begins with a line, and the number of its last line: a record continues after a line that ends
    within quotes or with a backslash."""
    parts, length, number = [line], len(line), start
    is_open = bool(line.count(_QUOTE) % 2) if format_.csv else _is_escaped(line)
    while is_open:
        more = _read_line(file, number + 1)
        if not more and not format_.csv:
            break
        parts.append(more)
        length += len(more)
        if not more or length > RECORD_CHARS_MAX:
            detail = "unterminated CSV quoted field" if format_.csv else "unterminated record"
            raise errors.BadCopyFormat(line=start, detail=detail)
        number += 1
        is_open = is_open is not bool(more.count(_QUOTE) % 2) if format_.csv else _is_escaped(more)
    return "".join(parts), number


def _is_escaped(line: str) -> bool:
    """Whether the line end is part of a field."""
    body = line.removesuffix("\n")
    return line.endswith("\n") and bool((len(body) - len(body.rstrip("\\"))) % 2)


def _read_line(file: Lines, number: int) -> str:
    try:
        line = file.readline(RECORD_CHARS_MAX)
    except UnicodeDecodeError:
        raise errors.InvalidEncoding(line=number) from None
    if len(line) == RECORD_CHARS_MAX:
        raise errors.BadCopyFormat(line=number, detail=f"a line has more than {RECORD_CHARS_MAX} characters")
    return line


def split_csv(text: str, format_: CopyFormat, line: int) -> Fields:
    """
    >>> split_csv('1,"a ""b"", c",,""', copy_format("csv", False, None, None), 1)
    ['1', 'a "b", c', None, '']
    """
    if _QUOTE not in text:
        return [None if part == format_.null else part for part in text.split(format_.delimiter)]
    fields: Fields = []
    position = 0
    while True:
        field, position = _csv_field(text, position, format_, line)
        fields.append(field)
        if position >= len(text):
            return fields
        position += 1
        if position == len(text):
            return [*fields, None if format_.null == "" else ""]


def _csv_field(text: str, position: int, format_: CopyFormat, line: int) -> tuple[str | None, int]:
    """One field, which may be partly quoted, and the position of its delimiter or of the end of the text."""
    parts: list[str] = []
    quoted = False
    while position < len(text) and text[position] != format_.delimiter:
        if text[position] != _QUOTE:
            end = min(_find(text, format_.delimiter, position), _find(text, _QUOTE, position))
            parts.append(text[position:end])
            position = end
            continue
        quoted = True
        position += 1
        while True:
            end = text.find(_QUOTE, position)
            if end < 0:
                raise errors.BadCopyFormat(line=line, detail="unterminated CSV quoted field")
            parts.append(text[position:end])
            position = end + 1
            if text[position : position + 1] != _QUOTE:
                break
            parts.append(_QUOTE)
            position += 1
    field = "".join(parts)
    return (None if not quoted and field == format_.null else field), position


def _find(text: str, what: str, start: int) -> int:
    found = text.find(what, start)
    return len(text) if found < 0 else found


def _split_text(text: str, format_: CopyFormat, line: int) -> Fields:
    if "\\" not in text:
        return [None if part == format_.null else part for part in text.split(format_.delimiter)]
    parts = re.split(rf"(?<!\\)((?:\\\\)*){re.escape(format_.delimiter)}", text)
    joined = [parts[i] + (parts[i + 1] if i + 1 < len(parts) else "") for i in range(0, len(parts), 2)]
    return [None if part == format_.null else _unescape(part, line) for part in joined]


def _unescape(field: str, line: int) -> str:
    """Numeric escapes are bytes: several may form one character."""
    if "\\" not in field:
        return field
    try:
        return _ESCAPED.sub(_escaped_byte, field.encode()).decode()
    except UnicodeError:
        raise errors.InvalidEncoding(line=line) from None


def _escaped_byte(match: re.Match[bytes]) -> bytes:
    what = match.group(1)
    if what[:1] == b"x" and len(what) > 1:
        return bytes([int(what[1:], 16)])
    if what[0] in b"01234567":
        return bytes([int(what, 8) & 0xFF])
    return _ESCAPES.get(what, what)


def format_record(fields: Sequence[str | None], format_: CopyFormat) -> str:
    show = _show_csv if format_.csv else _show_text
    return format_.delimiter.join([show(field, format_) for field in fields]) + "\n"


def _show_csv(field: str | None, format_: CopyFormat) -> str:
    if field is None:
        return format_.null
    if field == format_.null or field == "\\." or any(c in field for c in (format_.delimiter, _QUOTE, "\n", "\r")):
        return _QUOTE + field.replace(_QUOTE, _QUOTE * 2) + _QUOTE
    return field


def _show_text(field: str | None, format_: CopyFormat) -> str:
    if field is None:
        return format_.null
    escaped = "".join([_SPECIAL.get(c, c) for c in field]) if any(c in _SPECIAL for c in field) else field
    return escaped.replace(format_.delimiter, "\\" + format_.delimiter)
