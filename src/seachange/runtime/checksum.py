"""The checksum of a file, as the catalog records it: xxh3 with 128 bits."""

from __future__ import annotations

import pyarrow as pa
import xxhash

_CHUNK_BYTES = 4 << 20

new_digest = xxhash.xxh3_128


def checksum_of(source: pa.NativeFile) -> bytes:
    digest = new_digest()
    while (chunk := source.read_buffer(_CHUNK_BYTES)).size:
        digest.update(chunk)
    return digest.digest()
