"""Comparison key by key: point lookups through the image, against the rows of the reference reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.parquet as pq

from seachange.model.segments import IndexContents, Segment, SegmentKind
from seachange.runtime.filesystem import FileSystem
from seachange.storage.arrow import column_name
from seachange.storage.image import IndexImage
from seachange.storage.segment_footer import segment_name
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.files import segments_of
from seachange.verify.port import Snapshot
from seachange.verify.reference import KeyRanges, Reference, row_group_firsts
from seachange.verify.sets import ANOMALIES_MAX
from seachange.verify.subject import CheckedIndex

Row = tuple[Any, ...]


class KeywiseComparison:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def compare_look_ups(self, subject: CheckedIndex, reference: Reference) -> list[Anomaly]:
        """An index against itself: each key of the reference must be found, or not found, by a lookup."""
        found: list[Anomaly] = []
        for row in reference.live.values():
            key = row[: len(subject.key)]
            self._expect(found, subject, key, row, AnomalyKind.LOOKUP_DIFFERS)
        for key in reference.gone.values():
            if self._get(subject, key) is not None and len(found) < ANOMALIES_MAX:
                found.append(subject.anomaly(AnomalyKind.LOOKUP_DIFFERS, key, "a row that was deleted"))
        return found

    def compare_rows_with_entries(self, primary: CheckedIndex, rows: Reference, subject: CheckedIndex) -> list[Anomaly]:
        """From rows to entries: each row's entry is found under its key, and it is the only one under its unique
        key."""
        if not subject.complete:
            return []
        found: list[Anomaly] = []
        for entry in self._entries(primary, rows, subject):
            self._expect(found, subject, entry[: len(subject.key)], entry, AnomalyKind.MISSING_ENTRY)
            self._expect_alone(found, subject, entry)
        return found

    def compare_entries_with_rows(
        self, subject: CheckedIndex, entries: Reference, primary: CheckedIndex
    ) -> list[Anomaly]:
        """From entries to rows: each entry's row is found under its primary key, with the entry's values."""
        if not subject.complete or not set(primary.key) <= set(subject.columns):
            # With a primary key under construction, entries lead to rows by that key; sets of them are compared all the
            # same.
            return []
        positions = [subject.columns.index(column) for column in primary.key]
        entries_held = list(entries.live.values())
        rows = [self._get(primary, tuple([entry[position] for position in positions])) for entry in entries_held]
        # All at once: an expression may be evaluated by a query, which costs as much for one row as for thousands.
        derived = iter(self._derive(primary, [row for row in rows if row is not None], subject))
        found: list[Anomaly] = []
        for entry, row in zip(entries_held, rows, strict=True):
            expected = None if row is None else next(derived)
            same = expected is not None and all(map(_same, entry, expected))
            if not same and len(found) < ANOMALIES_MAX:
                found.append(
                    subject.anomaly(AnomalyKind.ORPHAN_ENTRY, entry[: len(subject.key)], "looked up key by key")
                )
        return found

    def _entries(self, primary: CheckedIndex, rows: Reference, subject: CheckedIndex) -> Iterator[Row]:
        """The entries that the rows require in an index."""
        return (entry for entry in self._derive(primary, list(rows.live.values()), subject) if entry is not None)

    def _derive(self, primary: CheckedIndex, rows: Sequence[Row], subject: CheckedIndex) -> list[Row | None]:
        """The entry of each row, in the form in which single rows are written; None if it has none."""
        table, index = primary.table, subject.index
        entries = self._snapshot.entries(table, index, primary.whole_rows(rows))
        known = {column_id: place for place, (column_id, _) in enumerate(table.stored_columns(index, table.layout))}
        order = [known[column.id] for column in subject.columns]
        return [None if entry is None else tuple([entry[place] for place in order]) for entry in entries]

    def _expect(self, found: list[Anomaly], subject: CheckedIndex, key: Row, row: Row, kind: AnomalyKind) -> None:
        actual = self._get(subject, key)
        if actual is None:
            detail = "nothing" if kind is AnomalyKind.LOOKUP_DIFFERS else "looked up key by key"
        elif not all(map(_same, actual, row)):
            detail = f"{actual} instead of {row}"
        else:
            return
        if len(found) < ANOMALIES_MAX:
            found.append(subject.anomaly(kind, key, detail))

    def _expect_alone(self, found: list[Anomaly], subject: CheckedIndex, entry: Row) -> None:
        width = len(subject.unique)
        if not width or (None in entry[:width] and subject.index.nulls_distinct):
            return
        holders = self._image(subject).find_unique(entry[:width], self._snapshot.snapshot)
        if len(holders) != 1 and len(found) < ANOMALIES_MAX:
            detail = f"{len(holders)} entries under its unique key"
            found.append(subject.anomaly(AnomalyKind.LOOKUP_DIFFERS, entry[: len(subject.key)], detail))

    def _image(self, subject: CheckedIndex) -> IndexImage:
        return self._snapshot.epoch.image(subject.table, subject.index, self._snapshot.snapshot)

    def _get(self, subject: CheckedIndex, key: Row) -> Row | None:
        found = self._image(subject).get(key, self._snapshot.snapshot)
        return None if found is None else subject.as_version(found.layout_id, found.row)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


# Sampling of key ranges of a large index for the comparison key by key.
# Those of a sample start at row groups that are spread evenly over the index's files, so that it reads little and no
# part of the key space is always left out. For a full comparison the whole key space is split where row groups start.
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
