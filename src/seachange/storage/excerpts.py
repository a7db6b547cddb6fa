"""Excerpts of large files that are elsewhere, for scans: files on this machine with the column chunks that are read.

The chunks lie where they do in the whole file, with holes between them. The footer is that of the file, but names only
the row groups that are there, and no bloom filters.

**Invariant:** each page of an excerpt was compared with its checksum when it arrived. A hole is not a valid page, so a
reader of what is not there fails.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seachange import errors
from seachange.model.ids import SegmentId
from seachange.model.segments import Segment
from seachange.runtime.filesystem import FileSystem, named_errors
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.ranged_file import RangedFile
from seachange.runtime.transfers import transfer_all
from seachange.storage.keys import EntryRanges
from seachange.storage.segment_footer import decode_footer, stored_segment
from seachange.storage.segment_reader import reading
from seachange.storage.thrift import I64, LIST, STRUCT, ListOf, Struct, ThriftReader, encode_struct

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
# One request for two chunks costs less than two if it brings no more than this besides.
_GAP_BYTES_MAX = 512 << 10
# What one request brings is held in memory.
_REQUEST_BYTES_MAX = 16 << 20
# Field numbers of the structs of the file format.
_ROWS, _ROW_GROUPS, _PROPERTIES = 3, 4, 5
_CHUNKS, _GROUP_ROWS = 1, 3
_CHUNK_METADATA, _PATH, _COMPRESSED, _DATA_PAGE, _DICTIONARY = 3, 3, 7, 9, 11
_BLOOM_FILTER = (14, 15)
_PAGE_COMPRESSED, _PAGE_CHECKSUM = 3, 4

# Of this process, whose excerpts are in one folder.
_NUMBERS = count(1)

Positions = NDArray[np.int64]
# Where a column chunk begins and ends in the file.
Extent = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Needed:
    """What a scan reads of a segment: the columns by their names in files, the keys in some ranges or all."""

    segment: Segment
    columns: frozenset[str]
    within: EntryRanges | None = None


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file to read a segment from: whole, or an excerpt with some of its `rows`, as ranges of positions."""

    name: str
    path: str
    rows: tuple[tuple[int, int], ...] | None = None

    def positions(self, positions: Positions) -> Positions:
        """The positions that rows of the segment have in this file, without those that are not in it."""
        if self.rows is None:
            return positions
        kept, before = [], 0
        for start, end in self.rows:
            kept.append(positions[(positions >= start) & (positions < end)] - start + before)
            before += end - start
        return np.concatenate(kept) if kept else positions[:0]


@dataclass(frozen=True, slots=True)
class _Held:
    columns: frozenset[str]
    firsts: tuple[bytes, ...]
    groups: tuple[int, ...]
    file: ScannedFile

    def has(self, needed: Needed) -> bool:
        wanted = _groups(self.firsts, needed)
        return needed.columns <= self.columns and (self.file.rows is None or set(wanted) <= set(self.groups))


@dataclass(slots=True)
class _Draft:
    """An excerpt that is being made. `requests` are the column chunks that are transferred together."""

    needed: Needed
    source: RangedFile
    name: str
    path: str
    firsts: tuple[bytes, ...]
    groups: tuple[int, ...]
    footer: Struct
    requests: tuple[tuple[Extent, ...], ...]
    has_failed: bool = False


class ExcerptReader:
    """Makes excerpts, and finds those that were made before. Thread-safe."""

    def __init__(self, files: FileSystem, gap_bytes_max: int = _GAP_BYTES_MAX) -> None:
        self._files = files
        self._gap_bytes_max = gap_bytes_max
        self._lock = threading.Lock()
        self._held: dict[SegmentId, list[_Held]] = {}

    def open(self, wanted: Sequence[Needed]) -> list[ScannedFile | None]:
        """None for a file that is on this machine, small, or of which much is needed: it is to be fetched."""
        found: list[ScannedFile | None] = [None] * len(wanted)
        missing = []
        for place, needed in enumerate(wanted):
            if self._files.ranges(stored_segment(needed.segment)) is not None:
                found[place] = self._find(needed)
                if found[place] is None:
                    missing.append(place)
        if missing:
            may_wait()
            for place, made in zip(missing, self._make([wanted[place] for place in missing]), strict=True):
                found[place] = made
        return found

    def forget(self, segment_id: SegmentId) -> None:
        with self._lock:
            self._held.pop(segment_id, None)

    def _find(self, needed: Needed) -> ScannedFile | None:
        with self._lock:
            held = [each for each in self._held.get(needed.segment.id, ()) if each.has(needed)]
        for each in held:
            if self._files.finds_excerpt(each.file.name):
                return each.file
            with self._lock, suppress(KeyError, ValueError):
                self._held[needed.segment.id].remove(each)
        return None

    def _make(self, wanted: Sequence[Needed]) -> list[ScannedFile | None]:
        drafts = transfer_all(self._draft, wanted)
        made = [draft for draft in drafts if draft is not None]
        try:
            transfer_all(_transfer, [(draft, request) for draft in made for request in draft.requests])
            return [None if draft is None or draft.has_failed else self._finish(draft) for draft in drafts]
        finally:
            for draft in made:
                with suppress(errors.Error):
                    self._files.discard(draft.name)

    def _draft(self, needed: Needed) -> _Draft | None:
        """None if the whole file should be fetched."""
        stored = stored_segment(needed.segment)
        source = self._files.ranges(stored)
        if source is None:
            return None
        with reading(stored.name):
            footer = _read_footer(source, stored.size_bytes)
            firsts = _firsts(footer, needed.segment)
            groups = _groups(firsts, needed)
            requests = tuple(_requests(_extents(footer, groups, needed.columns), self._gap_bytes_max))
        if self._files.ranges(stored, sum(request[-1][1] - request[0][0] for request in requests)) is None:
            return None
        name = f"{stored.name}.{next(_NUMBERS)}"
        path = self._files.temporary_path(name)
        with named_errors("write", path):
            Path(path).write_bytes(_MAGIC)
        return _Draft(needed, source, name, path, firsts, groups, footer, requests)

    def _finish(self, draft: _Draft) -> ScannedFile:
        segment, groups = draft.needed.segment, draft.footer[_ROW_GROUPS][1].items
        footer = encode_struct(_footer_of(draft.footer, draft.groups))
        with named_errors("write", draft.path), Path(draft.path).open("ab") as target:
            target.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        path = self._files.keep_excerpt(stored_segment(segment), draft.name)
        ends = list(accumulate(group[_GROUP_ROWS][1] for group in groups))
        rows = tuple((ends[number] - groups[number][_GROUP_ROWS][1], ends[number]) for number in draft.groups)
        file = ScannedFile(draft.name, path, None if len(rows) == len(groups) else rows)
        with self._lock:
            held = self._held.setdefault(segment.id, [])
            held.append(_Held(draft.needed.columns, draft.firsts, draft.groups, file))
        return file


def _read_footer(source: RangedFile, size: int) -> Struct:
    def read(start: int, count: int) -> bytes:
        source.seek(start)
        return source.read(count)

    length = int.from_bytes(read(size - _TAIL_BYTES, 4), "little")
    return ThriftReader(read(size - _TAIL_BYTES - length, length)).struct()


def _firsts(footer: Struct, segment: Segment) -> tuple[bytes, ...]:
    """The first keys of the row groups."""
    found = decode_footer({item[1][1]: item[2][1] for item in footer[_PROPERTIES][1].items})
    if found is None or found.segment_id != segment.id or len(found.firsts) != len(footer[_ROW_GROUPS][1].items):
        raise errors.SegmentDamaged(file=stored_segment(segment).name, detail="it belongs to another segment")
    return found.firsts


def _groups(firsts: Sequence[bytes], needed: Needed) -> tuple[int, ...]:
    """The row groups that may have a key in the ranges."""
    ends = zip(firsts, [*firsts[1:], needed.segment.key_max], strict=True)
    within = needed.within
    return tuple(number for number, (low, high) in enumerate(ends) if within is None or within.meet(low, high))


def _extents(footer: Struct, groups: Iterable[int], columns: frozenset[str]) -> list[Extent]:
    """Where the column chunks are, in ascending order."""
    found = []
    for number in groups:
        for item in footer[_ROW_GROUPS][1].items[number][_CHUNKS][1].items:
            metadata = item[_CHUNK_METADATA][1]
            if metadata[_PATH][1].items[0].decode() in columns:
                start = metadata.get(_DICTIONARY, metadata[_DATA_PAGE])[1]
                found.append((start, start + metadata[_COMPRESSED][1]))
    return sorted(found)


def _requests(extents: Iterable[Extent], gap_bytes_max: int) -> Iterator[tuple[Extent, ...]]:
    held: list[Extent] = []
    for extent in extents:
        if held and (extent[0] - held[-1][1] > gap_bytes_max or extent[1] - held[0][0] > _REQUEST_BYTES_MAX):
            yield tuple(held)
            held = []
        held.append(extent)
    if held:
        yield tuple(held)


def _transfer(task: tuple[_Draft, tuple[Extent, ...]]) -> None:
    """What is damaged, or does not fit on the disk, is for `fetch`, which transfers again, makes room and reports."""
    draft, request = task
    first = request[0][0]
    try:
        content = memoryview(draft.source.transfer((first, request[-1][1])))
        name = stored_segment(draft.needed.segment).name
        # Its own descriptor: the draft may have been discarded meanwhile, with its statement.
        with named_errors("write", draft.path), open(draft.path, "r+b") as target:
            for start, end in request:
                with reading(name):
                    check_pages(content[start - first : end - first], name)
                target.seek(start)
                target.write(content[start - first : end - first])
    except (errors.SegmentDamaged, errors.DiskFull):
        draft.source.give_up()
        draft.has_failed = True


def check_pages(chunk: memoryview, file: str) -> None:
    """Raises SegmentDamaged if a page of a column chunk is not the one that was written."""
    position = 0
    while position < len(chunk):
        reader = ThriftReader(chunk, position)
        header = reader.struct()
        position = reader.position + header[_PAGE_COMPRESSED][1]
        checksum = header.get(_PAGE_CHECKSUM)
        if checksum is None or zlib.crc32(chunk[reader.position : position]) != checksum[1] & 0xFFFFFFFF:
            raise errors.SegmentDamaged(file=file, detail="the checksum of a page differs")
    if position != len(chunk):
        raise errors.SegmentDamaged(file=file, detail="a page is cut off")


def _footer_of(footer: Struct, groups: Sequence[int]) -> Struct:
    """The footer, with these row groups only."""
    kept = [_without_filters(footer[_ROW_GROUPS][1].items[number]) for number in groups]
    rows = sum(group[_GROUP_ROWS][1] for group in kept)
    return footer | {_ROWS: (I64, rows), _ROW_GROUPS: (LIST, ListOf(STRUCT, kept))}


def _without_filters(group: Struct) -> Struct:
    chunks: list[Struct] = []
    for item in group[_CHUNKS][1].items:
        metadata = {number: value for number, value in item[_CHUNK_METADATA][1].items() if number not in _BLOOM_FILTER}
        chunks.append(item | {_CHUNK_METADATA: (STRUCT, metadata)})
    return group | {_CHUNKS: (LIST, ListOf(STRUCT, chunks))}
