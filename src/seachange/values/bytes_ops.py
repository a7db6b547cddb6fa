"""Functions of bytea that DuckDB lacks."""

from __future__ import annotations

import hashlib
import zlib

from seachange import errors


def get_byte(data: bytes, place: int) -> int:
    if not 0 <= place < len(data):
        raise errors.ArraySubscriptError(detail=f"index {place} out of valid range, 0..{len(data) - 1}")
    return data[place]


def hash_text(text: str) -> int:
    """A number of 32 bits with a sign, the same on every node."""
    return int.from_bytes(zlib.crc32(text.encode()).to_bytes(4), signed=True)


def substring(data: bytes, start: int, length: int) -> bytes:
    """From a position, counted from 1; positions before the first byte are empty."""
    if length < 0:
        raise errors.SubstringError()
    return data[max(start - 1, 0) : max(start - 1 + length, 0)]


def position(part: bytes, data: bytes) -> int:
    return data.find(part) + 1


def trim(data: bytes, those: bytes) -> bytes:
    return data.strip(those)


def trim_start(data: bytes, those: bytes) -> bytes:
    return data.lstrip(those)


def trim_end(data: bytes, those: bytes) -> bytes:
    return data.rstrip(those)


def count_bits(data: bytes) -> int:
    return int.from_bytes(data).bit_count()


def digest(data: bytes, bits: int) -> bytes:
    return hashlib.new(f"sha{bits}", data).digest()


def get_bit(data: bytes, place: int) -> int:
    """Counted from the lowest bit of the first byte."""
    if not 0 <= place < 8 * len(data):
        raise errors.ArraySubscriptError(detail=f"index {place} out of valid range, 0..{8 * len(data) - 1}")
    return data[place // 8] >> place % 8 & 1


def set_bit(data: bytes, place: int, value: int) -> bytes:
    if value not in (0, 1):
        raise errors.InvalidParameterValue(detail="new bit must be 0 or 1")
    changed = bytearray(data)
    bit = 1 << place % 8
    get_bit(data, place)
    changed[place // 8] = changed[place // 8] | bit if value else changed[place // 8] & ~bit
    return bytes(changed)


def set_byte(data: bytes, place: int, value: int) -> bytes:
    get_byte(data, place)
    return data[:place] + bytes([value & 0xFF]) + data[place + 1 :]


def escape(data: bytes) -> str:
    """
    >>> print(escape(b"\\x00\\xffA\\\\"))
    \\000\\377A\\\\
    """
    return "".join("\\\\" if b == 92 else f"\\{b:03o}" if b == 0 or b > 127 else chr(b) for b in data)


def shift_left(number: int, distance: int, bits: int) -> int:
    """As processors shift integers of so many bits: the distance is one within them, and what leaves them is lost.

    >>> shift_left(-42, 2, 32), shift_left(1, 31, 32), shift_left(1, 33, 32)
    (-168, -2147483648, 2)
    """
    shifted = (number << _within(distance, bits)) & ((1 << bits) - 1)
    return shifted - (1 << bits) if shifted >> (bits - 1) else shifted


def shift_right(number: int, distance: int, bits: int) -> int:
    return number >> _within(distance, bits)


def _within(distance: int, bits: int) -> int:
    return distance & (63 if bits == 64 else 31)
