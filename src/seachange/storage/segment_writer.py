"""Writes sorted rows to published segment files.

A segment is cut, written under its temporary name by one of a few threads, read back for its checksum, and published;
meanwhile the caller produces the rows of the next. A failure leaves no file behind.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seachange import errors
from seachange.model.ids import ColumnId, IndexId, LayoutId, SegmentId, Seq
from seachange.model.segments import Segment, SegmentKind
from seachange.runtime.checksum import checksum_of
from seachange.runtime.filesystem import FileSystem
from seachange.runtime.threads import ThreadPool
from seachange.storage import segment_footer
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.keys import Key, KeyCodec
from seachange.storage.row_groups import comparable
from seachange.values.types import Kind, SqlType

# Registers intents and returns the ids of that many new segments.
Reserve = Callable[[int], Sequence[SegmentId]]

_WRITERS = 2
_FALSE_POSITIVES = 0.05
_PAGE_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class SegmentShape:
    """The properties that all segments of one write share; the `key` is the entry key, the order of the rows."""

    columns: tuple[tuple[ColumnId, SqlType], ...]
    key: tuple[ColumnId, ...]
    index_id: IndexId
    layout_id: LayoutId
    kind: SegmentKind = SegmentKind.DATA
    fresh: bool = False
    rows_max: int = segment_footer.SEGMENT_ROWS_MAX
    row_group_rows: int = segment_footer.ROW_GROUP_ROWS
    # The columns whose compression is set; that of others is chosen by their values.
    compression: tuple[tuple[ColumnId, str], ...] = ()


class SegmentWriter:
    def __init__(self, files: FileSystem, shape: SegmentShape, reserve: Reserve) -> None:
        self._files = files
        self._shape = shape
        self._reserve = reserve
        self._schema = schema_of(shape.columns)
        types = dict(shape.columns)
        self._codec = KeyCodec([types[c] for c in shape.key])
        self._key_names = [column_name(c) for c in shape.key]

    def write(self, rows: pa.Table | Iterable[pa.RecordBatch]) -> list[Segment]:
        """Writes rows that are in key order already; returns the segments in that order."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        pending: list[Future[Segment]] = []
        started: list[SegmentId] = []
        with ThreadPool(_WRITERS, "segment-writer") as pool:
            try:
                for table in self._cut(batches):
                    # One segment per writer is being written while the next is produced; no more are held in memory.
                    if len(pending) >= _WRITERS:
                        pending[-_WRITERS].result()
                    started.extend(self._reserve(1))
                    pending.append(pool.submit(self._write_segment, started[-1], table))
                return [future.result() for future in pending]
            except BaseException:
                self._abandon(pending, started)
                raise

    def _cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            while batch.num_rows:
                part = batch.slice(0, self._shape.rows_max - rows)
                batch = batch.slice(part.num_rows)
                held.append(part)
                rows, size = rows + part.num_rows, size + part.nbytes
                if rows >= self._shape.rows_max or size >= segment_footer.SEGMENT_BYTES_MAX:
                    yield self._table(held)
                    held, rows, size = [], 0, 0
        if held:
            yield self._table(held)

    def _table(self, batches: list[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(batches).select(self._schema.names).cast(self._schema)

    def _write_segment(self, segment_id: SegmentId, table: pa.Table) -> Segment:
        name = segment_footer.segment_name(segment_id)
        starts = range(0, table.num_rows, self._shape.row_group_rows)
        footer = segment_footer.SegmentFooter(
            segment_id,
            self._shape.index_id,
            self._shape.layout_id,
            tuple(self._codec.encode(self._key(table, start)) for start in starts),
        )
        with writing(name):
            path = self._files.temporary_path(name)
            self._write_file(path, table, footer)
            with pa.OSFile(path) as written:
                size_bytes, checksum = written.size(), checksum_of(written)
        self._files.publish(name)
        return Segment(
            id=segment_id,
            index_id=self._shape.index_id,
            layout_id=self._shape.layout_id,
            kind=self._shape.kind,
            seq=Seq(0),
            fresh=self._shape.fresh,
            rows=table.num_rows,
            size_bytes=size_bytes,
            checksum=checksum,
            key_min=footer.firsts[0],
            key_max=self._codec.encode(self._key(table, table.num_rows - 1)),
        )

    def _write_file(self, path: str, table: pa.Table, footer: segment_footer.SegmentFooter) -> None:
        # Given a path, Arrow would release the file only at the end: a full disk would stay full.
        with pa.OSFile(path, "wb") as sink:
            encode_rows(sink, table, self._shape, footer.encode())

    def _key(self, table: pa.Table, row: int) -> Key:
        return tuple([table.column(name)[row].as_py() for name in self._key_names])

    def _abandon(self, pending: list[Future[Segment]], started: list[SegmentId]) -> None:
        for future in pending:
            future.cancel()
        for future in pending:
            if not future.cancelled():
                future.exception()
        # The original failure is the one to report; a file that stays behind has an intent, for garbage collection.
        with suppress(errors.Error):
            self._files.delete([segment_footer.segment_name(segment_id) for segment_id in started])


def encode_rows(
    sink: pa.NativeFile, rows: pa.Table, shape: SegmentShape, metadata: Mapping[bytes, bytes] | None = None
) -> None:
    """Writes rows, in key order and with the columns of the shape, as the Parquet file of a segment."""
    types, group_rows = dict(shape.columns), shape.row_group_rows
    compression = {column_name(c): method for c, method in shape.compression if c in types}
    # A bloom filter on a boolean would not exclude anything.
    filtered = [column_name(c) for c in shape.key if types[c].kind is not Kind.BOOLEAN]
    encodings = choose_encodings(rows.slice(0, group_rows))
    options = {"ndv": min(group_rows, rows.num_rows), "fpp": _FALSE_POSITIVES}
    sorting = [pq.SortingColumn(rows.schema.get_field_index(column_name(c))) for c in shape.key]
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression=encodings.compression | compression,
        column_encoding=encodings.encoding or None,
        use_dictionary=list(encodings.dictionary) or False,
        write_statistics=_orderly(rows, group_rows) or False,
        # DuckDB decodes decimals of up to 18 digits twice as fast from integers as from bytes.
        store_decimal_as_integer=True,
        # Pages are cut by row count alone, so that they begin at the same rows in all columns.
        max_rows_per_page=segment_footer.PAGE_ROWS,
        data_page_size=_PAGE_BYTES_MAX,
        # For readers that do not have the whole file.
        write_page_checksum=True,
        bloom_filter_options=dict.fromkeys(filtered, options) or None,
        sorting_columns=sorting,
    ) as writer:
        writer.write_table(rows, row_group_size=group_rows)
        if metadata is not None:
            writer.add_key_value_metadata(dict(metadata))


def _orderly(table: pa.Table, group_rows: int) -> list[str]:
    """Columns whose statistics DuckDB interprets correctly."""
    return [
        field.name
        for field, column in zip(table.schema, table.columns, strict=True)
        if not (_has_nan(column) or _has_constant_with_nulls(column, group_rows))
    ]


def _has_nan(column: pa.ChunkedArray) -> bool:
    """Parquet statistics leave out NaN, which DuckDB sorts above all numbers, so it would skip rows that meet a
    condition."""
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def _has_constant_with_nulls(column: pa.ChunkedArray, group_rows: int) -> bool:
    """If all non-NULL texts of a row group are equal, DuckDB 2.0.0 treats all of them as NULL in an IS NULL test."""
    if not column.null_count or not _is_bytes(column.type):
        return False
    for start in range(0, len(column), group_rows):
        group = column.slice(start, group_rows)
        if group.null_count:
            bounds = pc.min_max(group)
            if bounds["min"].is_valid and bounds["min"] == bounds["max"]:
                return True
    return False


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


@contextmanager
def writing(file: str) -> Iterator[None]:
    """Converts an OSError of Arrow, which may have its number only in the text, to the client's error."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(problem):
            raise errors.DiskFull(file=file) from problem
        raise errors.InputOutputError(action="write", file=file, detail=str(problem)) from problem


# The encodings of a segment's columns, chosen by trying them on a sample of the values.
# Savings on disk are paid for at every scan, most of all for numbers: zstd decompresses them at a fraction of the speed
# at which they are summed. So numbers are compressed only if that saves most of their size; text nearly always is.

# How often values must repeat, on average, for a dictionary to pay off. Text is large and slow without one; plain
# numbers are copied as they are, and only a dictionary of a few hundred values is as fast.
REPEATS_MIN_TEXT = 4
REPEATS_MIN_NUMBERS = 64
# Bit-packed differences pay off where neighbours are close, as in a key; elsewhere plain values are faster.
DELTA_SIZE_MAX = 0.25
# The fraction of its size that a column must shrink to for zstd to be worth decompressing.
ZSTD_SIZE_MAX_NUMBERS = 0.2
ZSTD_SIZE_MAX_TEXT = 0.8


@dataclass(frozen=True, slots=True)
class Encodings:
    """Options of the Parquet writer."""

    dictionary: tuple[str, ...]
    encoding: dict[str, str]
    compression: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One column in one encoding: the fraction of `size_bytes` that is left after zstd."""

    encoding: str | None
    size_bytes: int
    zstd_share: float


def choose_encodings(sample: pa.Table) -> Encodings:
    dictionary: list[str] = []
    encoding: dict[str, str] = {}
    compression: dict[str, str] = {}
    for name in sample.column_names:
        column = sample.column(name)
        if pa.types.is_nested(column.type):
            # These options apply to columns without nested parts only.
            compression[name] = "zstd"
            continue
        share_max = ZSTD_SIZE_MAX_TEXT if _is_text(column.type) else ZSTD_SIZE_MAX_NUMBERS
        if _is_repetitive(column):
            dictionary.append(name)
            chosen = _try(column, None, dictionary=True)
        elif _is_text(column.type):
            chosen = _try(column, "DELTA_LENGTH_BYTE_ARRAY")
        else:
            chosen = _best_of_numbers(column)
        if chosen.encoding is not None:
            encoding[name] = chosen.encoding
        compression[name] = "zstd" if chosen.zstd_share <= share_max else "none"
    return Encodings(tuple(dictionary), encoding, compression)


def _best_of_numbers(column: pa.ChunkedArray) -> _Trial:
    plain = _try(column, None)
    if not _is_integer(column.type):
        return plain
    delta = _try(column, "DELTA_BINARY_PACKED")
    return delta if delta.size_bytes <= plain.size_bytes * DELTA_SIZE_MAX else plain


def _try(column: pa.ChunkedArray, encoding: str | None, dictionary: bool = False) -> _Trial:
    sink = pa.BufferOutputStream()
    table = pa.table({"x": column})
    options = {} if encoding is None else {"column_encoding": {"x": encoding}}
    pq.write_table(table, sink, compression="zstd", use_dictionary=dictionary, store_decimal_as_integer=True, **options)
    written = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0).column(0)
    size_bytes = written.total_uncompressed_size
    return _Trial(encoding, size_bytes, written.total_compressed_size / max(size_bytes, 1))


def _is_repetitive(column: pa.ChunkedArray) -> bool:
    if pa.types.is_boolean(column.type):
        return False
    distinct: int = pc.count_distinct(comparable(column)).as_py()
    return distinct * (REPEATS_MIN_TEXT if _is_text(column.type) else REPEATS_MIN_NUMBERS) <= len(column)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _is_integer(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))
