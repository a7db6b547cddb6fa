"""COPY in blocks: text without quotes and escapes is converted to columns by Arrow's CSV reader.

**Invariant:** a block gives the values that its records would give, read one by one. A block for which this is not
certain, or that contains an error, is read record by record, and so is everything after it, since a record may continue
there.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from seachange import errors
from seachange.sql.copy.copy_text import CopyFormat
from seachange.storage.arrow import arrow_type
from seachange.values.coercion import coercer
from seachange.values.types import Kind, SqlType

BLOCK_CHARS: Final = 1 << 20
_TIMESTAMP: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
# Days from the first of January of the year 1 to that of 1970.
_FIRST_DAY: Final = -719_162


def read_block(file: TextIO, lines: int) -> str:
    """About as many characters as a block has; fewer only at the end of the file."""
    try:
        text = file.read(BLOCK_CHARS)
        # The two characters of a line end stay together.
        return text + file.read(1) if text.endswith("\r") else text
    except UnicodeDecodeError as error:
        raise errors.InvalidEncoding(line=lines + error.object[: error.start].count(b"\n") + 1) from None


class Resumed:
    """A file whose beginning was already read."""

    def __init__(self, begun: str, file: TextIO) -> None:
        self._begun = io.StringIO(begun, newline="")
        self._file = file

    def readline(self, limit: int, /) -> str:
        line = self._begun.readline(limit)
        return line if line.endswith(("\n", "\r")) else line + self._file.readline(limit - len(line))


def read_columns(text: str, format_: CopyFormat, types: Sequence[SqlType]) -> list[pa.Array] | None:
    """The columns of whole records, or None for a text that must be read record by record."""
    if not _is_plain(text, format_):
        return None
    names = [str(place) for place in range(len(types))]
    try:
        table = csv.read_csv(
            pa.py_buffer(text.encode()),
            csv.ReadOptions(use_threads=False, block_size=4 * len(text), column_names=names),
            csv.ParseOptions(delimiter=format_.delimiter, quote_char=False, newlines_in_values=False),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[format_.null],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None
    texts = [column.combine_chunks() for column in table.columns]
    if not format_.csv and sum(column.null_count for column in texts) < text.count("\\"):
        return None
    columns = []
    for column, type_ in zip(texts, types, strict=True):
        converted = _convert(column, type_)
        if converted is None:
            return None
        columns.append(converted)
    return columns


def _is_plain(text: str, format_: CopyFormat) -> bool:
    """Whether fields are simply separated by delimiters, and records by line ends."""
    if not format_.delimiter.isascii() or any(sign in text for sign in ("\r", "\0", "\n\n")):
        return False
    # Arrow would drop a byte order mark.
    if text.startswith(("\n", "\ufeff")):
        return False
    if format_.csv:
        return '"' not in text and "\\." not in text
    # The backslashes of NULLs are not escapes if each NULL is a field of its own, which reading shows.
    return text.count("\\") == (text.count(format_.null) if format_.null == "\\N" else 0)


def _convert(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    vectorised = _VECTORISED.get(type_.kind) if type_.element is None and not type_.enum else None
    try:
        if vectorised is not None:
            converted = vectorised(texts, type_)
            if converted is not None:
                return converted
        read: Callable[[Any], Any] = coercer(type_)
        return pa.array([read(value) for value in texts.to_pylist()], arrow_type(type_))
    except errors.DataError:
        return None


def _text(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    if type_.length and (pc.max(pc.utf8_length(texts)).as_py() or 0) > type_.length:
        return None
    return texts


def _char(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    return _text(pc.utf8_rtrim(texts, characters=" "), type_)


def _cast(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    try:
        return texts.cast(arrow_type(type_))
    except pa.ArrowInvalid:
        return None


def _integer(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    return None if _has(texts, "x") else _cast(texts, type_)


def _double(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    """Without exponents: Arrow takes a value out of range for infinity, which is an error here. NaN with a suffix is
    rejected, too."""
    return None if _has(texts, "e") or _has(texts, "(") else _cast(texts, type_)


def _boolean(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    known = pc.is_in(texts, value_set=pa.array(["t", "f", None]))
    return pc.equal(texts, "t") if pc.all(known).as_py() is not False else None


def _date(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    days = _cast(texts, type_)
    if days is None or (pc.min(days.cast(pa.int32())).as_py() or 0) < _FIRST_DAY:
        return None
    return days


def _timestamp(texts: pa.Array, type_: SqlType) -> pa.Array | None:
    if type_.scale:
        # With fewer than six digits they are rounded one by one.
        return None
    usual = pc.all(pc.match_substring_regex(texts, _TIMESTAMP)).as_py()
    return _cast(texts, type_) if usual is not False else None


def _has(texts: pa.Array, letter: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, letter, ignore_case=True)).as_py())


_VECTORISED: Final[dict[Kind, Callable[[pa.Array, SqlType], pa.Array | None]]] = {
    Kind.TEXT: _text,
    Kind.CHAR: _char,
    Kind.VARCHAR: _text,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.DOUBLE: _double,
    Kind.NUMERIC: _cast,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
}
