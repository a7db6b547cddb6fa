"""The binary format of COPY: records of fields in the binary format of their types.

**Invariant:** a length in the file is never trusted beyond `FIELD_BYTES_MAX`, and a truncated file is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from seachange import errors

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + bytes(8)
TRAILER = b"\xff\xff"
FIELD_BYTES_MAX = 256 << 20

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_END = -1
# A reader must reject unknown flags in the upper half.
_CRITICAL_FLAGS = 0xFFFF_0000


def read_binary_records(file: BinaryIO) -> Iterator[tuple[int, list[bytes | None]]]:
    """The records with their numbers, from 1."""
    if _take(file, len(SIGNATURE), 0) != SIGNATURE:
        raise errors.BadCopyFormat(line=0, detail="COPY file signature not recognized")
    flags, extension = struct.unpack(">Ii", _take(file, 8, 0))
    if flags & _CRITICAL_FLAGS or not 0 <= extension <= FIELD_BYTES_MAX:
        raise errors.BadCopyFormat(line=0, detail="unrecognized flags or extension in the header of a COPY file")
    _take(file, extension, 0)
    number = 0
    while True:
        number += 1
        head = file.read(_INT16.size)
        if not head:
            # Some clients send no trailer; PostgreSQL does not ask for it either.
            return
        (width,) = _INT16.unpack(head + _take(file, _INT16.size - len(head), number))
        if width == _END:
            if file.read(1):
                raise errors.BadCopyFormat(line=number, detail="unexpected data after the end of a COPY file")
            return
        yield number, [_read_field(file, number) for _ in range(max(width, 0))]


def _read_field(file: BinaryIO, number: int) -> bytes | None:
    (size,) = _INT32.unpack(_take(file, 4, number))
    if size == _END:
        return None
    if not 0 <= size <= FIELD_BYTES_MAX:
        raise errors.BadCopyFormat(line=number, detail=f"a field of {size} bytes")
    return _take(file, size, number)


def _take(file: BinaryIO, size: int, number: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise errors.BadCopyFormat(line=number, detail="unexpected end of a COPY file")
    return data
