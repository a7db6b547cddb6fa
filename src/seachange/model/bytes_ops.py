"""Functions of bytea that DuckDB lacks."""

from __future__ import annotations

import hashlib

from seachange import errors


def get_byte(data: bytes, place: int) -> int:
    if not 0 <= place < len(data):
        raise errors.ArraySubscriptError(detail=f"index {place} out of valid range, 0..{len(data) - 1}")
    return data[place]


def count_bits(data: bytes) -> int:
    return int.from_bytes(data).bit_count()


def digest(data: bytes, bits: int) -> bytes:
    return hashlib.new(f"sha{bits}", data).digest()
