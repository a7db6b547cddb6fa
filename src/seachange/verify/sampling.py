"""Sampling of key ranges of a large index for the comparison key by key.

Those of a sample start at row groups that are spread evenly over the index's files, so that it reads little and no part
of the key space is always left out. For a full comparison the whole key space is split where row groups start.
"""

from __future__ import annotations

import pyarrow.parquet as pq

from seachange.model.segments import IndexContents, Segment, SegmentKind
from seachange.runtime.filesystem import FileSystem
from seachange.storage.arrow import column_name
from seachange.storage.segment_footer import segment_name
from seachange.verify.files import segments_of
from seachange.verify.reference import KeyRanges, row_group_firsts
from seachange.verify.subject import CheckedIndex

_SPANS = 16


def stored_rows(contents: IndexContents) -> int:
    inline = sum(batch.rows for delta in contents.deltas for batch in delta.batches)
    return inline + sum(segment.rows for segment in segments_of(contents))


def split_ranges(contents: IndexContents, files: FileSystem, rows_max: int) -> list[KeyRanges | None]:
    """Ranges of about so many stored rows, which have every key exactly once; None: the index is read whole."""
    groups = [pair for segment in _data_segments(contents) for pair in _group_firsts(segment, files)]
    if stored_rows(contents) <= rows_max or not groups:
        return [None]
    lows, held = [b""], 0
    for first, rows in sorted(groups):
        if held and held + rows > rows_max and first > lows[-1]:
            lows.append(first)
            held = 0
        held += rows
    return [KeyRanges([low], [high]) for low, high in zip(lows, [*lows[1:], None], strict=True)]


def choose_ranges(subject: CheckedIndex, contents: IndexContents, files: FileSystem, rows_max: int) -> KeyRanges | None:
    """None: the index is small enough to be read whole, or all of it is inline."""
    groups = [
        (segment, group, rows)
        for segment in _data_segments(contents)
        for group, rows in enumerate(_group_rows(segment, files))
    ]
    if stored_rows(contents) <= rows_max or not groups:
        return None
    spans = min(_SPANS, len(groups))
    chosen = [groups[number * len(groups) // spans] for number in range(spans)]
    ends = sorted(_span(subject, segment, group, max(rows_max // spans, 1), files) for segment, group, _ in chosen)
    return _disjoint(ends)


def _data_segments(contents: IndexContents) -> list[Segment]:
    return [segment for segment in segments_of(contents) if segment.kind is SegmentKind.DATA]


def _group_firsts(segment: Segment, files: FileSystem) -> list[tuple[bytes, int]]:
    """The first key of each row group, and how many rows it has."""
    with files.open_input(segment_name(segment.id)) as source:
        firsts = row_group_firsts(pq.ParquetFile(source))
    return list(zip(firsts, _group_rows(segment, files), strict=True))


def _group_rows(segment: Segment, files: FileSystem) -> list[int]:
    with files.open_input(segment_name(segment.id)) as source:
        metadata = pq.read_metadata(source)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def _span(subject: CheckedIndex, segment: Segment, group: int, rows: int, files: FileSystem) -> tuple[bytes, bytes]:
    """From the first key of a row group to that of the row so many rows later, or the end of the group."""
    names = [column_name(column.id) for column in subject.key]
    with files.open_input(segment_name(segment.id)) as source:
        file = pq.ParquetFile(source)
        table = file.read_row_group(group, columns=names, use_threads=False)
        first = row_group_firsts(file)[group]
    last = tuple([table.column(name)[min(rows, table.num_rows - 1)].as_py() for name in names])
    # One row beyond keeps a group of a single row from giving an empty range.
    return first, subject.codec().encode(last) + b"\x00"


def _disjoint(spans: list[tuple[bytes, bytes]]) -> KeyRanges:
    lows: list[bytes] = []
    highs: list[bytes] = []
    for low, high in spans:
        if highs and low < highs[-1]:
            highs[-1] = max(highs[-1], high)
        else:
            lows.append(low)
            highs.append(high)
    return KeyRanges(lows, list(highs))
