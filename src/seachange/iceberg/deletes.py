"""Superseded row positions of a data file: a deletion vector in a Puffin file, or a file of position deletes.

**Invariant:** one Puffin file has the deletion vector of one data file: some readers apply the first vector of a file
to all data files that refer to it.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seachange.iceberg.encoders import load_encoder

_PUFFIN: Final = b"PFA1"
_VECTOR: Final = bytes((0xD1, 0xD3, 0x39, 0x64))
# The id of the hidden column with the row's position.
_POSITION_ID: Final = 2147483645
PATH_ID: Final = 2147483546
_POS_ID: Final = 2147483545
# Where the vector begins in the file.
VECTOR_OFFSET: Final = len(_PUFFIN)


def encode_vector(positions: NDArray[np.int64]) -> bytes:
    """A deletion vector: a bitmap of positions, all of which fit into 32 bits."""
    bitmap = _VECTOR + struct.pack("<QI", 1, 0) + _serialize(positions)
    return struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))


def _serialize(positions: NDArray[np.int64]) -> bytes:
    return bytes(load_encoder("pyroaring").BitMap(positions.astype(np.uint32)).serialize())


def encode_puffin(vector: bytes, data_file: str, count: int) -> bytes:
    blob = {
        "type": "deletion-vector-v1",
        "fields": [_POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": VECTOR_OFFSET,
        "length": len(vector),
        "properties": {"referenced-data-file": data_file, "cardinality": str(count)},
    }
    footer = json.dumps({"blobs": [blob], "properties": {}}).encode()
    return _PUFFIN + vector + _PUFFIN + footer + struct.pack("<II", len(footer), 0) + _PUFFIN


def encode_position_deletes(positions: NDArray[np.int64], data_file: str) -> bytes:
    """Parquet with the rows (file, position) in order."""
    ordered = np.sort(positions).astype(np.int64)
    schema = pa.schema([_numbered("file_path", pa.string(), PATH_ID), _numbered("pos", pa.int64(), _POS_ID)])
    paths = pa.array([data_file] * len(ordered), pa.string())
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([paths, pa.array(ordered)], schema=schema), sink, compression="zstd")
    return sink.getvalue()


def _numbered(name: str, type_: pa.DataType, id_: int) -> pa.Field:
    return pa.field(name, type_, nullable=False, metadata={b"PARQUET:field_id": str(id_).encode()})
