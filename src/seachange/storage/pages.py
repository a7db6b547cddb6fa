"""Single pages of a row group, for lookups of one row.

Arrow decodes whole row groups only. So the page of each column that has the row is passed to it as a Parquet file of
its own: the unchanged bytes of the page, with a footer that describes nothing else.

**Invariant:** the pages of one row group begin at the same rows in all columns, or the group is not read by pages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from seachange.runtime.nonblocking import may_wait
from seachange.storage.thrift import I64, LIST, STRUCT, ListOf, Struct, ThriftReader, encode_struct

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_DICTIONARY_PAGE = 2
# Field numbers of the structs of the file format.
_SCHEMA, _ROWS, _ROW_GROUPS, _PROPERTIES = 2, 3, 4, 5
_CHUNKS, _CHUNK_METADATA = 1, 3
_CODEC_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY = 5, 6, 7, 9, 11
# Fields that describe a whole chunk, and do not apply to one of its pages.
_OF_WHOLE_CHUNK = frozenset({8, 10, 12, 13, 14, 15, 16})
_ARROW_SCHEMA = b"ARROW:schema"


@dataclass(frozen=True, slots=True)
class Page:
    """The location of a page, and its number of rows."""

    offset: int
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of a row group: its metadata, its dictionary if it has one, its pages."""

    metadata: Struct
    dictionary: Page | None
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class PagedGroup:
    """The columns of a row group, and the rows at which their pages start."""

    chunks: dict[str, Chunk]
    starts: tuple[int, ...]

    def page_of(self, row: int) -> int:
        return bisect_right(self.starts, row) - 1


class PageReader:
    """Not thread-safe: the caller has a lock for the file."""

    def __init__(self, source: pa.NativeFile, verifies: bool = False) -> None:
        """`verifies`: each page is compared with its checksum."""
        self._source = source
        self._verifies = verifies
        self._footer: Struct | None = None
        self._groups: dict[int, PagedGroup | None] = {}

    def group(self, number: int) -> PagedGroup | None:
        """None if the group cannot be read by pages."""
        if number not in self._groups:
            may_wait()
            self._groups[number] = self._read_group(number)
        return self._groups[number]

    def read(self, group: PagedGroup, page: int, names: Sequence[str]) -> pa.Table:
        """The rows of one page of these columns."""
        rows = group.chunks[names[0]].pages[page].rows
        body, chunks = bytearray(_MAGIC), []
        for name, chunk in group.chunks.items():
            start = len(body)
            if name not in names:
                chunks.append(_describe(chunk, rows, start, start, start))
                continue
            if chunk.dictionary is not None:
                body += self._source.read_at(chunk.dictionary.size, chunk.dictionary.offset)
            data = len(body)
            body += self._source.read_at(chunk.pages[page].size, chunk.pages[page].offset)
            chunks.append(_describe(chunk, rows, start, data, len(body)))
        footer = encode_struct(self._footer_of(chunks, rows, len(body)))
        body += footer + len(footer).to_bytes(4, "little") + _MAGIC
        source = pa.BufferReader(pa.py_buffer(body))
        file = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=self._verifies)
        return file.read(columns=list(names), use_threads=False)

    def _footer_of(self, chunks: list[Struct], rows: int, size: int) -> Struct:
        columns: Struct = {_CHUNKS: (LIST, ListOf(STRUCT, chunks)), 2: (I64, size), 3: (I64, rows)}
        whole = self._file_metadata()
        properties = [p for p in whole[_PROPERTIES][1].items if p[1][1] == _ARROW_SCHEMA]
        return {
            1: whole[1],
            _SCHEMA: whole[_SCHEMA],
            _ROWS: (I64, rows),
            _ROW_GROUPS: (LIST, ListOf(STRUCT, [columns])),
            _PROPERTIES: (LIST, ListOf(STRUCT, properties)),
        }

    def _file_metadata(self) -> Struct:
        if self._footer is None:
            size = self._source.size()
            length = int.from_bytes(self._source.read_at(4, size - _TAIL_BYTES), "little")
            self._footer = ThriftReader(self._source.read_at(length, size - _TAIL_BYTES - length)).struct()
        return self._footer

    def _read_group(self, number: int) -> PagedGroup | None:
        group = self._file_metadata()[_ROW_GROUPS][1].items[number]
        chunks = {}
        for item in group[_CHUNKS][1].items:
            metadata = item[_CHUNK_METADATA][1]
            if len(metadata[3][1].items) != 1:
                # The value count of a page of lists is that of the elements, not of the rows.
                return None
            name = metadata[3][1].items[0].decode()
            chunks[name] = self._read_chunk(metadata)
        rows = {tuple(page.rows for page in chunk.pages) for chunk in chunks.values()}
        if len(rows) != 1:
            return None
        return PagedGroup(chunks, (0, *accumulate(rows.pop()))[:-1])

    def _read_chunk(self, metadata: Struct) -> Chunk:
        start = metadata.get(_DICTIONARY, metadata[_DATA_PAGE])[1]
        size = metadata[_COMPRESSED][1]
        data = self._source.read_at(size, start)
        dictionary, pages, position = None, [], 0
        while position < size:
            reader = ThriftReader(data, position)
            header = reader.struct()
            end = reader.position + header[3][1]
            if header[1][1] == _DICTIONARY_PAGE:
                dictionary = Page(start + position, end - position, 0)
            else:
                counted = header[5] if 5 in header else header[8]
                pages.append(Page(start + position, end - position, counted[1][1][1]))
            position = end
        return Chunk(metadata, dictionary, tuple(pages))


def _describe(chunk: Chunk, rows: int, start: int, data: int, end: int) -> Struct:
    kept = {number: field for number, field in chunk.metadata.items() if number not in _OF_WHOLE_CHUNK}
    kept |= {_CODEC_VALUES: (I64, rows), _UNCOMPRESSED: (I64, end - start), _COMPRESSED: (I64, end - start)}
    kept |= {_DATA_PAGE: (I64, data)}
    if chunk.dictionary is not None:
        kept |= {_DICTIONARY: (I64, start)}
    return {2: (I64, 0), _CHUNK_METADATA: (STRUCT, kept)}
