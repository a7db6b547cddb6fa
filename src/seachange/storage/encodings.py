"""The encodings of a segment's columns, chosen by trying them on a sample of the values.

Savings on disk are paid for at every scan, most of all for numbers: zstd decompresses them at a fraction of the speed
at which they are summed. So numbers are compressed only if that saves most of their size; text nearly always is.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seachange.storage.row_groups import comparable

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
