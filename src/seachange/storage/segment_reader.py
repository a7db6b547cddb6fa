"""Lookups by key in one segment file, without DuckDB.

The footer leads to one row group, a bisection of its key columns to one row, and only then are the other columns
decoded, from a single page if possible. Decoded parts are kept in a cache that all readers share.
"""

from __future__ import annotations

import errno
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.segments import Segment
from seachange.runtime.nonblocking import Holding, may_wait
from seachange.runtime.ranged_file import RangedFile
from seachange.storage.arrow import column_name
from seachange.storage.keys import Key, KeyCodec
from seachange.storage.pages import PageReader
from seachange.storage.row_groups import INTEGER_KINDS, Columns, KeyColumns, Positions, RowGroupCache
from seachange.storage.segment_footer import PAGE_ROWS, decode_footer, segment_name
from seachange.values.types import SqlType

Row = tuple[Any, ...]
Found = tuple[int, Row]


class SegmentReader:
    """`key` are the entry key's columns with the types in which keys are looked up, which may be wider than stored.

    Thread-safe: shared data is immutable, decoding happens under a lock.
    """

    def __init__(
        self,
        segment: Segment,
        source: pa.NativeFile | RangedFile,
        key: Sequence[tuple[ColumnId, SqlType]],
        cache: RowGroupCache,
    ) -> None:
        self.segment = segment
        # Only parts of the file are on this machine.
        self._ranges = source if isinstance(source, RangedFile) else None
        self.name = segment_name(segment.id)
        self._cache = cache
        self._lock = threading.Lock()
        self._types = tuple(type_ for _, type_ in key)
        self._codec = KeyCodec(self._types)
        with self._reading():
            opened = pa.PythonFile(source, mode="r") if isinstance(source, RangedFile) else source
            # A file that was fetched has been verified as a whole.
            self._file = pq.ParquetFile(opened, pre_buffer=False, page_checksum_verification=self.is_ranged)
            self._pages = PageReader(opened, self.is_ranged)
            metadata = self._file.metadata
            if isinstance(source, RangedFile):
                source.set_parts([_extent(metadata.row_group(g)) for g in range(metadata.num_row_groups)])
            self.columns: tuple[str, ...] = tuple(self._file.schema_arrow.names)
            self._firsts = self._row_group_keys(metadata)
        self._starts = [0, *accumulate(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))]
        names = [column_name(c) for c, _ in key]
        self._key_names = tuple(names)
        self._rest_names = tuple(name for name in self.columns if name not in names)
        # The position of each column of the file in a row of key columns followed by the rest.
        decoded = (*self._key_names, *self._rest_names)
        self._order = None if decoded == self.columns else tuple(decoded.index(name) for name in self.columns)
        integers = len(key) == 1 and self._types[0].kind in INTEGER_KINDS
        self._numbers = _integer_bounds(self._firsts, segment.key_max) if integers else None

    @property
    def is_ranged(self) -> bool:
        return self._ranges is not None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with reading(self.name):
                yield
        except errors.SegmentDamaged:
            if self._ranges is not None:
                self._ranges.give_up()
            raise

    def find(self, key: Key) -> Found | None:
        """The position and the row of an entry."""
        encoded = self._codec.encode(key)
        group = self._group(encoded)
        if group < 0:
            return None
        row = self._keys(group).find(key, encoded)
        return self._found(group, row) if row >= 0 else None

    def find_prefix(self, prefix: Sequence[Any]) -> list[Found]:
        """The positions and rows of all entries whose key starts with these values, in order."""
        low = self._codec.encode_prefix(prefix)
        found: list[Found] = []
        # The first match may be the last row of the row group before the one that starts at or after the prefix.
        for group in range(max(bisect_right(self._firsts, low) - 1, 0), len(self._firsts)):
            keys = self._keys(group)
            for row in range(keys.seek(prefix, low), len(keys)):
                if not keys.encoded(row).startswith(low):
                    return found
                found.append(self._found(group, row))
        return found

    def find_between(self, low: bytes, high: bytes, count_max: int) -> list[Found]:
        """The positions and rows of the first entries with low <= key < high, at most one more than `count_max`."""
        found: list[Found] = []
        for group in range(max(bisect_right(self._firsts, low) - 1, 0), len(self._firsts)):
            keys = self._keys(group)
            for row in range(keys.seek_encoded(low), len(keys)):
                if keys.encoded(row) >= high or len(found) > count_max:
                    return found
                found.append(self._found(group, row))
        return found

    def positions(self, keys: Sequence[Key], encoded: Sequence[bytes] | None = None) -> Positions:
        """The position of each key in the file, -1 if it is not present. `encoded`: the keys' encodings, if known
        already."""
        positions = np.full(len(keys), -1, np.int64)
        if self._numbers is not None:
            self._integer_positions(keys, self._numbers, positions)
            return positions
        encoded = encoded if encoded is not None else [self._codec.encode(key) for key in keys]
        wanted: dict[int, list[int]] = {}
        for at, code in enumerate(encoded):
            wanted.setdefault(self._group(code), []).append(at)
        wanted.pop(-1, None)
        for group, places in wanted.items():
            rows = self._keys(group).find_all([keys[at] for at in places], [encoded[at] for at in places])
            positions[places] = np.where(rows >= 0, rows + self._starts[group], -1)
        return positions

    def keys(self) -> list[Key]:
        """Every entry key, in order."""
        return [key for group in range(len(self._firsts)) for key in self._keys(group).rows()]

    def row(self, position: int) -> Row:
        group = bisect_right(self._starts, position) - 1
        return self._row(group, position - self._starts[group])

    def _integer_positions(self, keys: Sequence[Key], bounds: Positions, positions: Positions) -> None:
        firsts, last = bounds[:-1], bounds[-1]
        present = [at for at, (value,) in enumerate(keys) if value is not None]
        numbers = np.fromiter((keys[at][0] for at in present), np.int64, len(present))
        places = np.array(present, np.int64)
        groups = np.where(numbers <= last, firsts.searchsorted(numbers, side="right") - 1, -1)
        for group in np.unique(groups[groups >= 0]).tolist():
            chosen = np.flatnonzero(groups == group)
            rows = self._keys(group).find_numbers(numbers[chosen])
            positions[places[chosen]] = np.where(rows >= 0, rows + self._starts[group], -1)

    def _group(self, encoded: bytes) -> int:
        """The only row group that may hold the key, -1 if there is none."""
        return bisect_right(self._firsts, encoded) - 1 if encoded <= self.segment.key_max else -1

    def _found(self, group: int, row: int) -> Found:
        return self._starts[group] + row, self._row(group, row)

    def _row(self, group: int, row: int) -> Row:
        values = self._keys(group).row(row) + self._rest(group, row)
        return values if self._order is None else tuple([values[i] for i in self._order])

    def _keys(self, group: int) -> KeyColumns:
        part = (group, self._types)
        keys = self._cache.get(self.segment.id, part)
        if keys is None:
            keys = KeyColumns(self._decode(group, self._key_names), self._types, self._codec)
            self._cache.put(self.segment.id, part, keys)
        assert isinstance(keys, KeyColumns)
        return keys

    def _rest(self, group: int, row: int) -> Row:
        """The columns besides the key, of one row."""
        if not self._rest_names:
            return ()
        page, start = self._page(group, row)
        part = (group, page, self._key_names)
        rest = self._cache.get(self.segment.id, part)
        if rest is None:
            rest = Columns(self._decode(group, self._rest_names) if page is None else self._decode_page(group, page))
            self._cache.offer(self.segment.id, part, rest)
        return rest.row(row - start)

    def _page(self, group: int, row: int) -> tuple[int | None, int]:
        """The page that has the row, and the row that it starts at; None if the group is read as a whole."""
        if self._starts[group + 1] - self._starts[group] <= PAGE_ROWS:
            return None, 0
        with Holding(self._lock), self._reading():
            paged = self._pages.group(group)
        if paged is None:
            return None, 0
        page = paged.page_of(row)
        return page, paged.starts[page]

    def _decode(self, group: int, names: tuple[str, ...]) -> list[pa.Array]:
        may_wait()
        with self._lock, self._reading():
            table = self._file.read_row_group(group, columns=list(names), use_threads=False)
        return [_one_array(table.column(name)) for name in names]

    def _decode_page(self, group: int, page: int) -> list[pa.Array]:
        may_wait()
        with self._lock, self._reading():
            paged = self._pages.group(group)
            assert paged is not None
            table = self._pages.read(paged, page, self._rest_names)
        return [_one_array(table.column(name)) for name in self._rest_names]

    def _row_group_keys(self, metadata: pq.FileMetaData) -> tuple[bytes, ...]:
        footer = decode_footer(metadata.metadata)
        if footer is None or len(footer.firsts) != metadata.num_row_groups:
            raise errors.SegmentDamaged(file=self.name, detail="it has no segment footer")
        if footer.segment_id != self.segment.id:
            raise errors.SegmentDamaged(file=self.name, detail=f"it belongs to another segment, {footer.segment_id}")
        return footer.firsts


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _extent(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Where the row group begins and ends in the file."""
    columns = [group.column(number) for number in range(group.num_columns)]
    starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
    ends = [start + c.total_compressed_size for start, c in zip(starts, columns, strict=True)]
    return min(starts), max(ends)


def _integer_bounds(firsts: Sequence[bytes], last: bytes) -> Positions | None:
    """The first keys and the last one as numbers; None if one of them is NULL."""
    bounds = (*firsts, last)
    if any(len(bound) != 9 for bound in bounds):
        return None
    return np.array([int.from_bytes(bound[1:], "big") - (1 << 63) for bound in bounds], np.int64)


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Data that Arrow cannot decode is damage; an error of the operating system is an I/O error."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in (None, errno.ENOENT):
            raise errors.InputOutputError(action="read", file=file, detail=str(problem)) from problem
        raise errors.SegmentDamaged(file=file, detail=str(problem)) from problem
    except (pa.ArrowException, ValueError, LookupError) as problem:
        raise errors.SegmentDamaged(file=file, detail=str(problem)) from problem
