"""Adapters for integer arrays in PostgreSQL."""

from __future__ import annotations

import struct
from itertools import chain, repeat

from psycopg.adapt import Dumper
from psycopg.pq import Format


class Bigints(list[int]):
    """A bigint[], whatever the size of its numbers, so that a statement is prepared once."""


class BigintsDumper(Dumper):
    format = Format.BINARY
    oid = 1016
    _ELEMENT_OID = 20

    def dump(self, obj: Bigints) -> bytes:
        if not obj:
            return struct.pack(">iii", 0, 0, self._ELEMENT_OID)
        elements = chain.from_iterable(zip(repeat(8), obj, strict=False))
        header = (1, 0, self._ELEMENT_OID, len(obj), 1)
        return struct.pack(">5i" + "iq" * len(obj), *header, *elements)
