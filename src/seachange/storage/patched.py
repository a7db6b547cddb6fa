"""A cache of columns of touched files, without the superseded rows.

Skipping rows by position costs DuckDB several times what it takes to read a narrow column. So a statement that reads a
whole table takes the fixed-width columns of its touched files from here: each is decoded once, its superseded rows are
dropped, and it is cached until further rows of its file are superseded or the space is needed.

**Invariant:** for a committed segment, equal numbers of superseded positions mean equal positions: what one snapshot
sees as superseded, every later one does too. So their number identifies the cached version.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seachange.model.ids import SegmentId
from seachange.model.segments import Segment
from seachange.runtime.filesystem import FileSystem
from seachange.runtime.threads import ThreadPool
from seachange.storage.segment_reader import reading

Positions = NDArray[np.int64]
Columns = dict[str, pa.ChunkedArray]

_DECIMAL64_PRECISION_MAX = 18


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A committed segment, its positions to skip, and the name of the verified file that has the needed columns of all
    rows."""

    segment: Segment
    superseded: Positions
    name: str


@dataclass(frozen=True, slots=True)
class _Kept:
    superseded: int
    values: pa.ChunkedArray


class PatchedColumns:
    """The most recently used columns, up to `bytes_max`. Thread-safe: shared data is immutable."""

    def __init__(self, files: FileSystem, bytes_max: int) -> None:
        self._files = files
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[tuple[SegmentId, str], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def has_room(self, segments: Sequence[Segment], types: Sequence[pa.DataType]) -> bool:
        """Whether these columns of these segments fit all at once; text, whose size is not known, never does."""
        if any(not _is_fixed_width(type_) for type_ in types):
            return False
        bits: int = sum(s.rows for s in segments) * sum(t.bit_width for t in types)
        return bits <= self._bytes_max * 8

    def tables(self, files: Sequence[TouchedFile], schema: pa.Schema) -> list[pa.Table]:
        """The remaining rows of these columns for each file, in file order."""
        found = [self._find(file, schema.names) for file in files]
        incomplete = [number for number, columns in enumerate(found) if len(columns) < len(schema.names)]
        with ThreadPool(os.cpu_count()) if incomplete else nullcontext() as pool:
            read = pool.map(lambda n: self._read(files[n], schema, found[n]), incomplete) if pool else ()
            for number, columns in zip(incomplete, read, strict=True):
                found[number] |= columns
        return [pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema) for columns in found]

    def forget(self, segment_id: SegmentId) -> None:
        with self._lock:
            for name in [name for name in self._kept if name[0] == segment_id]:
                self._drop(name)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def _find(self, file: TouchedFile, names: Sequence[str]) -> Columns:
        found: Columns = {}
        with self._lock:
            for name in names:
                kept = self._kept.get((file.segment.id, name))
                if kept is not None and kept.superseded == len(file.superseded):
                    self._kept.move_to_end((file.segment.id, name))
                    found[name] = kept.values
        return found

    def _read(self, file: TouchedFile, schema: pa.Schema, found: Columns) -> Columns:
        wanted = pa.schema([field for field in schema if field.name not in found])
        with self._files.open_input(file.name) as source, reading(file.name):
            table = pq.ParquetFile(source, pre_buffer=False).read(columns=wanted.names, use_threads=False)
        visible = np.ones(table.num_rows, dtype=bool)
        visible[file.superseded] = False
        table = table.select(wanted.names).cast(wanted).filter(pa.array(visible))
        for column in wanted.names:
            self._keep((file.segment.id, column), _Kept(len(file.superseded), table.column(column)))
        return dict(zip(wanted.names, table.columns, strict=True))

    def _keep(self, name: tuple[SegmentId, str], kept: _Kept) -> None:
        with self._lock:
            self._drop(name)
            self._kept[name] = kept
            self._bytes += kept.values.nbytes
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def _drop(self, name: tuple[SegmentId, str]) -> None:
        dropped = self._kept.pop(name, None)
        if dropped is not None:
            self._bytes -= dropped.values.nbytes


def in_memory(type_: pa.DataType) -> pa.DataType:
    """The type in which a column is cached: that of DuckDB's own vectors, which is half as wide for most decimals."""
    if pa.types.is_decimal128(type_) and type_.precision <= _DECIMAL64_PRECISION_MAX:
        return pa.decimal64(type_.precision, type_.scale)
    return type_


def _is_fixed_width(type_: pa.DataType) -> bool:
    try:
        return bool(type_.bit_width)
    except ValueError:
        return False
