"""The reference reader: reads one index by the key rule alone, which is that of each entry the newest version at or
below the snapshot counts.

It shares nothing with the read plan: no image, no positions, no caches. The catalog lists the segments and batches;
they are read in sequence order into a dict. Above a limit it reads only some key ranges, spread evenly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from seachange.model.ids import LayoutId
from seachange.model.segments import GenerationMember, IndexContents, IndexDelta, Op, Segment, SegmentKind
from seachange.runtime.filesystem import FileSystem
from seachange.storage.arrow import column_name
from seachange.storage.batches import BatchCodec, read_batch
from seachange.storage.keys import Key
from seachange.storage.segment_footer import decode_footer, segment_name
from seachange.values.canonical import parse_canonical
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.subject import CheckedIndex

Row = tuple[Any, ...]
Record = dict[str, Any]


@dataclass(slots=True)
class KeyRanges:
    """Disjoint half-open ranges of encoded keys, in order; `lows` and `highs` are parallel. The last high may be None:
    then nothing is beyond."""

    lows: list[bytes]
    highs: list[bytes | None]

    def __contains__(self, encoded: bytes) -> bool:
        at = bisect_right(self.lows, encoded) - 1
        return at >= 0 and self._is_below(encoded, at)

    def meets(self, first: bytes, after: bytes) -> bool:
        """Whether a range has a key in [first, after]."""
        at = bisect_right(self.lows, after) - 1
        return at >= 0 and self._is_below(first, at)

    def _is_below(self, encoded: bytes, at: int) -> bool:
        high = self.highs[at]
        return high is None or encoded < high


@dataclass(slots=True)
class Reference:
    """The contents of a snapshot, by encoded key: the visible rows, and the keys that were deleted."""

    live: dict[bytes, Row] = field(default_factory=dict)
    gone: dict[bytes, Key] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)
    rows_read: int = 0


class ReferenceReader:
    """Rows are returned as the table's version sees them: in the order of the subject's columns."""

    def __init__(self, subject: CheckedIndex, files: FileSystem, ranges: KeyRanges | None = None) -> None:
        self._subject = subject
        self._files = files
        self._ranges = ranges
        self._codec = subject.codec()
        self._key = [column_name(column.id) for column in subject.key]
        # A column that a row was written without has the value frozen when the column was added.
        self._columns = [(column_name(c.id), parse_canonical(c.type, c.frozen)) for c in subject.columns]

    def read(self, contents: IndexContents) -> Reference:
        found = Reference()
        for member in contents.generation.members if contents.generation else ():
            self._add_member(found, member)
        for delta in contents.deltas:
            self._add_delta(found, delta)
        return found

    def _add_member(self, found: Reference, member: GenerationMember) -> None:
        hidden = set(np.frombuffer(member.deleted, dtype="<u4").tolist())
        for position, key, encoded, record in self._records(member.segment):
            if position in hidden:
                found.gone.setdefault(encoded, key)
                continue
            if encoded in found.live:
                detail = f"once more in {segment_name(member.segment.id)}"
                found.anomalies.append(self._subject.anomaly(AnomalyKind.TWO_VERSIONS, key, detail))
            self._put(found, encoded, record)

    def _add_delta(self, found: Reference, delta: IndexDelta) -> None:
        written: set[bytes] = set()
        for op, key, encoded, record in self._changes(delta):
            if encoded in written:
                found.anomalies.append(self._subject.anomaly(AnomalyKind.TWO_VERSIONS, key, f"commit {delta.seq}"))
            if op is Op.INSERT and encoded in found.live and encoded not in written:
                found.anomalies.append(self._subject.anomaly(AnomalyKind.BROKEN_PROMISE, key, f"commit {delta.seq}"))
            written.add(encoded)
            if op is Op.TOMBSTONE:
                found.rows_read += 1
                found.live.pop(encoded, None)
                found.gone[encoded] = key
            else:
                self._put(found, encoded, record)

    def _put(self, found: Reference, encoded: bytes, record: Record) -> None:
        found.rows_read += 1
        found.gone.pop(encoded, None)
        found.live[encoded] = tuple([record.get(name, frozen) for name, frozen in self._columns])

    def _changes(self, delta: IndexDelta) -> Iterator[tuple[Op, Key, bytes, Record]]:
        for segment in delta.segments:
            put = Op.INSERT if segment.fresh else Op.PUT
            op = Op.TOMBSTONE if segment.kind is SegmentKind.TOMBSTONES else put
            yield from ((op, key, encoded, record) for _, key, encoded, record in self._records(segment))
        for batch in delta.batches:
            ops, rows = read_batch(batch, self._subject.table_name, self._codec_of)
            names = self._stored_names(batch.layout_id)
            for number, row in zip(ops, rows, strict=True):
                record = dict(zip(names, row, strict=True))
                key, encoded = self._key_of(record)
                if self._ranges is None or encoded in self._ranges:
                    yield Op(number), key, encoded, record

    def _codec_of(self, layout_id: LayoutId) -> BatchCodec:
        table = self._subject.table
        return BatchCodec(table.stored_columns(self._subject.index, table.layout_by_id[layout_id]))

    def _stored_names(self, layout_id: LayoutId) -> list[str]:
        table = self._subject.table
        stored = table.stored_columns(self._subject.index, table.layout_by_id[layout_id])
        return [column_name(c) for c, _ in stored]

    def _key_of(self, record: Record) -> tuple[Key, bytes]:
        key = tuple([record[name] for name in self._key])
        return key, self._codec.encode(key)

    def _records(self, segment: Segment) -> Iterator[tuple[int, Key, bytes, Record]]:
        """The rows of a file that are in range: position, key, encoded key, values by column name."""
        with self._files.open_input(segment_name(segment.id)) as source:
            file = pq.ParquetFile(source)
            for start, group in self._groups(segment, file):
                names = file.schema_arrow.names
                table = file.read_row_group(group, use_threads=False)
                rows = zip(*[table.column(name).to_pylist() for name in names], strict=True)
                for offset, row in enumerate(rows):
                    record = dict(zip(names, row, strict=True))
                    key, encoded = self._key_of(record)
                    if self._ranges is None or encoded in self._ranges:
                        yield start + offset, key, encoded, record

    def _groups(self, segment: Segment, file: pq.ParquetFile) -> Iterable[tuple[int, int]]:
        """The row groups that may have a key in range, with the positions that they start at."""
        rows = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        starts = [0, *accumulate(rows)][:-1]
        if self._ranges is None:
            return list(zip(starts, range(len(rows)), strict=True))
        firsts = row_group_firsts(file)
        ends = [*firsts[1:], segment.key_max]
        meets = self._ranges.meets
        return [(starts[g], g) for g in range(len(rows)) if meets(firsts[g], ends[g])]


def row_group_firsts(file: pq.ParquetFile) -> list[bytes]:
    """The encoded first key of each row group, as the file itself says."""
    footer = decode_footer(file.metadata.metadata)
    return list(footer.firsts) if footer else []
