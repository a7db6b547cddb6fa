"""A node's image of one index: a generation's files, the deltas above it, and which positions they supersede.

Inline rows are kept as one coalesced run per layout and found by a key map; of files only the metadata is kept. For a
scan the image derives, per file, which positions are superseded and from which sequence on: resolved by key once, when
the first scan needs it, then by position only.

**Invariant:** for every snapshot S with base <= S <= applied, exactly the newest version at or below S of each entry is
visible: an inline row when seq <= S < end, a file row when the file's seq <= S and its position is not superseded at or
below S. Ends and superseded positions are only ever added with sequences above every snapshot that was handed out
before, so a reader needs no lock once it has taken its arrays.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seachange.model.ids import GenerationId, IndexId, LayoutId, SegmentId, Seq
from seachange.model.segments import Generation, IndexContents, IndexDelta, InlineBatch, Op, Segment, SegmentKind
from seachange.storage.batches import BatchCodec, read_batch
from seachange.storage.int_buffer import IntBuffer
from seachange.storage.keys import EntryRanges, Key, KeyCodec, OrderedKeys
from seachange.storage.projection import StoredColumns
from seachange.storage.small_arrays import array_of, mask_of
from seachange.storage.warehouse import Warehouse

Row = tuple[Any, ...]
FOREVER = (1 << 62) - 1
_CHUNKS_MAX = 8


@dataclass(frozen=True, slots=True)
class ImageShape:
    """What an image needs to know of its index: how many stored columns are the entry key, how many of those are the
    index's own key (0 if that is the entry key), each layout's columns, and the key's columns with their current types.
    Keys are looked up in these types, also in files whose own types are narrower."""

    index_id: IndexId
    key_width: int
    prefix_width: int
    columns: Callable[[LayoutId], StoredColumns]
    key: Callable[[], StoredColumns]
    # The name of the table for error messages.
    table: Callable[[], str]


@dataclass(slots=True)
class FileState:
    """A data file and its positions that deltas have superseded."""

    segment: Segment
    visible_from: Seq
    positions: IntBuffer = field(default_factory=IntBuffer)
    since: IntBuffer = field(default_factory=IntBuffer)
    gone: dict[int, int] = field(default_factory=dict)

    def supersede(self, position: int, seq: int) -> None:
        # The first one wins: a superseded position stays so, and keys are resolved in sequence order.
        if position not in self.gone:
            self.gone[position] = seq
            self.positions.append(position)
            self.since.append(seq)

    def superseded_at(self, snapshot: Seq) -> NDArray[np.int64]:
        return self.positions.view()[self.since.view()[: len(self.positions)] <= snapshot]


class LayoutRun:
    """The inline PUT rows of one layout, in arrival order, as tuples and, once scanned, as Arrow chunks."""

    __slots__ = ("_chunked", "_chunks", "_shown", "codec", "columns", "ends", "layout_id", "rows", "seqs")

    def __init__(self, layout_id: LayoutId, columns: StoredColumns) -> None:
        self.layout_id = layout_id
        self.columns = columns
        self.codec = BatchCodec(columns)
        self.rows: list[Row] = []
        self.seqs = IntBuffer()
        self.ends = IntBuffer()
        self._chunks: list[pa.RecordBatch] = []
        self._chunked = 0
        # The mask and table of the last scan.
        self._shown: tuple[NDArray[np.bool_], pa.Table] | None = None

    def append(self, row: Row, seq: Seq) -> int:
        self.rows.append(row)
        self.seqs.append(seq)
        self.ends.append(FOREVER)
        return len(self.rows) - 1

    def visible(self, snapshot: Seq) -> pa.Table:
        """The rows that a snapshot sees. The table object is the same as long as the rows are, so that sessions need
        not register it with DuckDB again. Requires the image's lock."""
        mask = (self.seqs.view() <= snapshot) & (self.ends.view() > snapshot)
        if self._shown is None or not np.array_equal(self._shown[0], mask):
            table = self._table()
            self._shown = mask, table if mask.all() else table.filter(mask_of(mask))
        return self._shown[1]

    def _table(self) -> pa.Table:
        schema = pa.schema(list(self.codec.schema)[1:])
        if self._chunked < len(self.rows):
            columns = zip(*self.rows[self._chunked :], strict=True)
            arrays = [array_of(values, f.type) for values, f in zip(columns, schema, strict=True)]
            self._chunks.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            self._chunked = len(self.rows)
        table = pa.Table.from_batches(self._chunks, schema=schema)
        if len(self._chunks) > _CHUNKS_MAX:
            table = table.combine_chunks()
            self._chunks = table.to_batches()
        return table


@dataclass(slots=True)
class Version:
    """An inline version of an entry; `run` is None for a tombstone."""

    seq: Seq
    run: LayoutRun | None
    position: int
    older: Version | None


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row as stored, with the layout that it was written in."""

    row: Row
    layout_id: LayoutId


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A file of a snapshot with the positions to skip."""

    segment: Segment
    superseded: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SnapshotParts:
    """The parts of a snapshot of an index, ready for planning."""

    files: tuple[FileSlice, ...]
    inline: tuple[tuple[LayoutId, pa.Table], ...]
    # How many files were left out.
    skipped: int = 0
    # The ranges of keys that are needed, if not all.
    within: EntryRanges | None = None


class IndexImage:
    def __init__(self, shape: ImageShape, codec: KeyCodec, warehouse: Warehouse, contents: IndexContents) -> None:
        self.shape = shape
        self.applied = contents.upto
        self.base = contents.generation.base if contents.generation else Seq(0)
        self.generation: Generation | None = contents.generation
        self.inline_rows = 0
        self.oldest_inline = Seq(FOREVER)
        self._codec = codec
        self._warehouse = warehouse
        self._lock = threading.RLock()
        self._runs: dict[LayoutId, LayoutRun] = {}
        self._newest: dict[bytes, Version] = {}
        # For a secondary index: the inline entries under each of its own keys.
        self._by_prefix: dict[Key, list[Key]] = {}
        self._ordered = OrderedKeys()
        self._files: list[FileState] = []
        self._tombstones: list[Segment] = []
        self._segment_seq = Seq(0)
        # What scans have yet to resolve by key, in sequence order: inline keys and whole segments.
        self._pending: list[tuple[Seq, Key, bytes] | tuple[Seq, Segment]] = []
        for member in contents.generation.members if contents.generation else ():
            state = FileState(member.segment, self.base)
            for position in np.frombuffer(member.deleted, dtype="<u4").tolist():
                state.supersede(position, self.base)
            self._files.append(state)
        for delta in contents.deltas:
            self._add(delta)

    @property
    def generation_id(self) -> GenerationId | None:
        return self.generation.id if self.generation else None

    @property
    def delta_segments(self) -> int:
        return sum(1 for f in self._files if f.visible_from > self.base) + len(self._tombstones)

    def has_other_layouts(self, layout_id: LayoutId) -> bool:
        return any(f.segment.layout_id != layout_id for f in self._files)

    @property
    def rows_in_files(self) -> int:
        return sum(f.segment.rows for f in self._files)

    @property
    def segment_ids(self) -> frozenset[SegmentId]:
        return frozenset(segment.id for segment in (*(f.segment for f in self._files), *self._tombstones))

    # Following the log.

    def apply(self, delta: IndexDelta) -> None:
        if delta.seq <= self.applied:
            return
        with self._lock:
            self._add(delta)
            self.applied = delta.seq

    def apply_rows(self, seq: Seq, layout_id: LayoutId, ops: Sequence[int], rows: Sequence[Row]) -> None:
        """One batch of this node's own commit. A commit has one batch per index and layout."""
        with self._lock:
            self._add_rows(seq, layout_id, ops, rows)
            self.applied = seq

    def _add(self, delta: IndexDelta) -> None:
        for segment in delta.segments:
            if segment.kind is SegmentKind.DATA:
                self._files.append(FileState(segment, delta.seq))
            else:
                self._tombstones.append(segment)
            if not segment.fresh:
                self._pending.append((delta.seq, segment))
            self._segment_seq = delta.seq
        for batch in delta.batches:
            self._add_batch(delta.seq, batch)

    def _add_batch(self, seq: Seq, batch: InlineBatch) -> None:
        ops, rows = read_batch(batch, self.shape.table(), lambda layout_id: self._run(layout_id).codec)
        self._add_rows(seq, batch.layout_id, ops, rows)

    def _add_rows(self, seq: Seq, layout_id: LayoutId, ops: Sequence[int], rows: Iterable[Row]) -> None:
        run = self._run(layout_id)
        width, encode = self.shape.key_width, self._codec.encode
        self.oldest_inline = min(self.oldest_inline, seq)
        for op, row in zip(ops, rows, strict=True):
            key = row[:width]
            encoded = encode(key)
            older = self._newest.get(encoded)
            if older is None and self.shape.prefix_width:
                self._by_prefix.setdefault(key[: self.shape.prefix_width], []).append(key)
            if older is not None and older.run is not None and older.run.ends[older.position] > seq:
                older.run.ends[older.position] = seq
            if op != Op.INSERT and (older is None or older.seq < self._segment_seq):
                self._pending.append((seq, key, encoded))
            if older is None:
                self._ordered.add(encoded)
            if op == Op.TOMBSTONE:
                self._newest[encoded] = Version(seq, None, -1, older)
            else:
                self._newest[encoded] = Version(seq, run, run.append(row, seq), older)
            self.inline_rows += 1

    def _run(self, layout_id: LayoutId) -> LayoutRun:
        run = self._runs.get(layout_id)
        if run is None:
            run = self._runs[layout_id] = LayoutRun(layout_id, self.shape.columns(layout_id))
        return run

    # Point reads.

    def get(self, key: Key, snapshot: Seq) -> StoredRow | None:
        encoded = self._codec.encode(key)
        version = self._newest.get(encoded)
        while version is not None and version.seq > snapshot:
            version = version.older
        seq = version.seq if version is not None else Seq(-1)
        newer = self._newest_in_deltas(key, encoded, seq, snapshot)
        if newer is not None:
            return newer[0]
        if version is not None:
            return self._found(version)
        return self._find_in_base(key, encoded)

    def find_unique(self, prefix: Key, snapshot: Seq) -> list[StoredRow]:
        """The visible entries of a secondary index under its own key."""
        candidates = dict.fromkeys(self._by_prefix.get(prefix, ()))
        low = self._codec.encode_prefix(prefix)
        for segment in [f.segment for f in self._files] + self._tombstones:
            if segment.seq <= snapshot and segment.key_min[: len(low)] <= low <= segment.key_max:
                reader = self._warehouse.reader(segment, self.shape.key())
                candidates.update((row[: self.shape.key_width], None) for _, row in reader.find_prefix(prefix))
        return [found for key in candidates if (found := self.get(key, snapshot)) is not None]

    def find_between(self, low: bytes, high: bytes, snapshot: Seq, count_max: int) -> list[StoredRow] | None:
        """The visible entries with low <= encoded key < high; None if more than `count_max` would have to be read."""
        with self._lock:
            inline = self._ordered.between(low, high, count_max)
            files = [f for f in self._files if f.visible_from <= snapshot and _overlaps(f.segment, low, high)]
        if len(inline) > count_max or _rows_inside(files, low, high) > count_max:
            return None
        # Entries that have only tombstones inline are found in the files.
        keys: dict[bytes, Key] = {e: key for e in inline if (key := self._inline_key(e)) is not None}
        found: list[StoredRow] = []
        for state in files:
            reader = self._warehouse.reader(state.segment, self.shape.key())
            left = count_max - len(keys) - len(found)
            hits = reader.find_between(low, high, left)
            if len(hits) > left:
                # There may be more entries, and these may be among `keys` already.
                return None
            for position, row in hits:
                key = row[: self.shape.key_width]
                encoded = self._codec.encode(key)
                if self._segment_seq or encoded in self._newest:
                    keys[encoded] = key
                elif state.gone.get(position, FOREVER) > self.base:
                    found.append(StoredRow(row, state.segment.layout_id))
        return found + [hit for key in keys.values() if (hit := self.get(key, snapshot)) is not None]

    def _inline_key(self, encoded: bytes) -> Key | None:
        version: Version | None = self._newest[encoded]
        while version is not None and version.run is None:
            version = version.older
        if version is None or version.run is None:
            return None
        return version.run.rows[version.position][: self.shape.key_width]

    def _found(self, version: Version) -> StoredRow | None:
        if version.run is None:
            return None
        return StoredRow(version.run.rows[version.position], version.run.layout_id)

    def _newest_in_deltas(self, key: Key, encoded: bytes, above: Seq, snapshot: Seq) -> tuple[StoredRow | None] | None:
        """The newest version in a delta segment in (above, snapshot]: (None,) for a tombstone."""
        if self._segment_seq <= above:
            return None
        segments = [f.segment for f in self._files if f.visible_from > self.base] + self._tombstones
        for segment in sorted(segments, key=lambda s: (s.seq, s.kind == SegmentKind.DATA), reverse=True):
            if above < segment.seq <= snapshot and segment.key_min <= encoded <= segment.key_max:
                hit = self._reader_find(segment, key)
                if hit is not None:
                    return (StoredRow(hit[1], segment.layout_id) if segment.kind is SegmentKind.DATA else None,)
        return None

    def _find_in_base(self, key: Key, encoded: bytes) -> StoredRow | None:
        for state in self._files:
            segment = state.segment
            if state.visible_from <= self.base and segment.key_min <= encoded <= segment.key_max:
                hit = self._reader_find(segment, key)
                if hit is not None and state.gone.get(hit[0], FOREVER) > self.base:
                    return StoredRow(hit[1], segment.layout_id)
        return None

    def _reader_find(self, segment: Segment, key: Key) -> tuple[int, Row] | None:
        return self._warehouse.reader(segment, self.shape.key()).find(key)

    # Scans.

    def is_empty(self, snapshot: Seq) -> bool:
        """Schema changes ask for this. Most tables have a file with more rows than the unresolved deltas, each of which
        supersedes at most one row of a file: then nothing needs to be resolved."""
        with self._lock:
            unresolved = sum(1 if len(item) == 3 else item[1].rows for item in self._pending)
            files = [f for f in self._files if f.visible_from <= snapshot]
            if any(f.segment.rows - len(f.positions) > unresolved for f in files):
                return False
        parts = self.parts(snapshot)
        return not parts.inline and all(len(f.superseded) >= f.segment.rows for f in parts.files)

    def parts(self, snapshot: Seq, within: EntryRanges | None = None) -> SnapshotParts:
        """`within`: files without keys in these ranges may be left out."""
        with self._lock:
            self._resolve()
            seen = [f for f in self._files if f.visible_from <= snapshot]
            read = seen if within is None else [f for f in seen if within.meet(f.segment.key_min, f.segment.key_max)]
            files = tuple(FileSlice(f.segment, f.superseded_at(snapshot)) for f in read)
            inline = tuple((i, table) for i, run in self._runs.items() if (table := run.visible(snapshot)).num_rows)
            return SnapshotParts(files, inline, len(seen) - len(read), within)

    def _resolve(self) -> None:
        """Finds the file positions, and for segments the inline rows too, that pending deltas supersede.

        Items stay pending until all of them are resolved: a file that cannot be read fails this scan, and the next.
        """
        batch: list[tuple[Seq, Key, bytes]] = []
        for item in self._pending:
            if len(item) == 3:
                batch.append(item)
                continue
            self._resolve_keys(batch)
            batch = []
            self._resolve_segment(*item)
        self._resolve_keys(batch)
        self._pending = []

    def _resolve_keys(self, batch: list[tuple[Seq, Key, bytes]]) -> None:
        if not batch:
            return
        ordered = sorted(batch, key=lambda item: (item[2], item[0]))
        encoded = [item[2] for item in ordered]
        for state in self._files:
            segment = state.segment
            first, end = bisect_left(encoded, segment.key_min), bisect_right(encoded, segment.key_max)
            inside = [item for item in ordered[first:end] if item[0] > state.visible_from]
            if not inside:
                continue
            reader = self._warehouse.reader(segment, self.shape.key())
            positions = reader.positions([item[1] for item in inside], [item[2] for item in inside])
            for (seq, _, _), position in zip(inside, positions.tolist(), strict=True):
                if position >= 0:
                    state.supersede(position, seq)

    def _resolve_segment(self, seq: Seq, segment: Segment) -> None:
        reader = self._warehouse.reader(segment, self.shape.key())
        keys = reader.keys()
        items = [(seq, key, self._codec.encode(key)) for key in keys]
        for _, _, encoded in items:
            version = self._newest.get(encoded)
            while version is not None and version.seq >= seq:
                version = version.older
            if version is not None and version.run is not None and version.run.ends[version.position] > seq:
                version.run.ends[version.position] = seq
        self._resolve_keys(items)

    def rebased(self, contents: IndexContents) -> IndexImage:
        """The image over a newer generation."""
        return IndexImage(self.shape, self._codec, self._warehouse, contents)


def _overlaps(segment: Segment, low: bytes, high: bytes) -> bool:
    return segment.key_max >= low and segment.key_min < high


def _rows_inside(files: Iterable[FileState], low: bytes, high: bytes) -> int:
    """A lower bound, apart from superseded rows."""
    inside = (f for f in files if low <= f.segment.key_min and f.segment.key_max < high)
    return sum(f.segment.rows - len(f.positions) for f in inside)
