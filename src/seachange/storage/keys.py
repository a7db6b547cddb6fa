"""Entry keys encoded as bytes in key order, and hashed for the conflict sets of commits.

Each value starts with a tag, NULL above every value (as in PostgreSQL's default order), then a form whose byte order is
the value's: integers, dates and times as sign-flipped big-endian, floats as IEEE bits made monotone, text and bytes
escaped and terminated so that a prefix sorts first.

**Invariant:** encode(a) < encode(b) exactly when a sorts before b, and equal only for equal keys.

**Invariant:** a schema change conflicts by the descriptors that it changes (`change_hash`) and by every name that it
gives (`name_hash`), as rows do by their keys. Owner, privileges and comments have no such key: the second change
modifies what it finds.
"""

from __future__ import annotations

import datetime as dt
import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import numpy as np
import xxhash
from numpy.typing import NDArray

from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, KeyHash, TableId
from seachange.model.schema.constraint import ConstraintKind
from seachange.values.types import Kind, SqlType

# The encoding of NULL; every value is below it and at or above FIRST_VALUE. AFTER is above every continuation of a key.
NULL = b"\x02"
FIRST_VALUE = b"\x01"
AFTER = b"\xff"
_SIGN_64 = 1 << 63
_MASK_64 = (1 << 64) - 1
_EPOCH_DATE = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
# The default context rounds to 28 digits; a numeric has up to 38.
_EXACT = Context(prec=100)

Encoder = Callable[[Any], bytes]
Key = tuple[Any, ...]
Hashes = NDArray[np.int64]

_pack_u64 = struct.Struct(">Q").pack
_pack_f64 = struct.Struct(">d").pack


def _integer(value: int) -> bytes:
    return b"\x01" + _pack_u64(value + _SIGN_64)


def _float(value: float) -> bytes:
    # NaN sorts above every number and equals itself; the two zeros are one value.
    if value != value:
        return b"\x01" + b"\xff" * 8
    bits = int.from_bytes(_pack_f64(value + 0.0), "big")
    return b"\x01" + _pack_u64(bits ^ _MASK_64 if bits & _SIGN_64 else bits | _SIGN_64)


def _bytes(value: bytes) -> bytes:
    return b"\x01" + value.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _text(value: str) -> bytes:
    return _bytes(value.encode())


def text_prefix(value: str) -> bytes:
    """The common prefix of the encodings of all texts that start with `value`; no text continues with AFTER."""
    return b"\x01" + value.encode().replace(b"\x00", b"\x00\xff")


def _decimal(scale: int) -> Encoder:
    def encode(value: Decimal) -> bytes:
        return b"\x01" + (int(_EXACT.scaleb(value, scale)) + (1 << 127)).to_bytes(16, "big")

    return encode


def _date(value: dt.date) -> bytes:
    return _integer(value.toordinal() - _EPOCH_DATE)


def _time(value: dt.time) -> bytes:
    return _integer(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)


def _timestamp(value: dt.datetime) -> bytes:
    return _integer((value - _EPOCH) // _MICROSECOND)


def _timestamptz(value: dt.datetime) -> bytes:
    return _integer((value - _EPOCH_UTC) // _MICROSECOND)


def _uuid(value: UUID) -> bytes:
    return b"\x01" + value.bytes


_ENCODERS: dict[Kind, Encoder] = {
    Kind.BOOLEAN: _integer,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.TEXT: _text,
    Kind.VARCHAR: _text,
    Kind.CHAR: _text,
    Kind.NAME: _text,
    Kind.OID: _integer,
    Kind.BYTEA: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
    Kind.UUID: _uuid,
    Kind.INET: _bytes,
    Kind.CIDR: _bytes,
}


class KeyCodec:
    """Encodes keys of one index; `types` are those of its key columns, in order."""

    __slots__ = ("_encoders", "_single")

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._encoders = tuple(_decimal(t.digits[1]) if t.kind is Kind.NUMERIC else _ENCODERS[t.kind] for t in types)
        self._single = self._encoders[0] if len(self._encoders) == 1 else None

    def encode(self, key: Key) -> bytes:
        if self._single is not None:
            value = key[0]
            return NULL if value is None else self._single(value)
        return b"".join(
            [NULL if value is None else encode(value) for encode, value in zip(self._encoders, key, strict=True)]
        )

    def encode_at(self, position: int, value: Any) -> bytes:
        """The value of one column as part of the encoded key."""
        return NULL if value is None else self._encoders[position](value)

    def encode_prefix(self, values: Sequence[Any]) -> bytes:
        """The first columns of a key; every key that starts with them sorts at or after it."""
        return b"".join(
            [NULL if value is None else encode(value) for encode, value in zip(self._encoders, values, strict=False)]
        )


def entry_hash(index_id: IndexId, encoded: bytes) -> KeyHash:
    """The conflict key of writing an entry."""
    return _hash(b"e", index_id, encoded)


def unique_hash(index_id: IndexId, encoded: bytes) -> KeyHash:
    """The conflict key of adding or removing a unique key, and of relying on its presence."""
    return _hash(b"u", index_id, encoded)


def rows_hash(table_id: TableId) -> KeyHash:
    """Shared by commits that change or delete rows of a table; locked by a transaction that changes many of them."""
    return _hash(b"r", table_id, b"")


def conversion_hash(table_id: TableId, column_id: ColumnId) -> KeyHash:
    """Relied on by a commit with a row that has no value for a converted column, and written when the change publishes
    the column: at most one of the two commits."""
    return _hash(b"c", IndexId(table_id), _pack_u64(column_id))


def constraint_hash(kind: ConstraintKind, table_id: TableId, id_: int) -> KeyHash:
    """The same for a row that violates a constraint which its transaction has not committed; `id_` is that of the
    constraint, of the index, or of the column that must not be null."""
    return _hash(b"c", IndexId(table_id), kind.value.encode() + _pack_u64(id_))


def reference_hash(table_id: TableId, constraint_id: ConstraintId, encoded: bytes) -> KeyHash:
    """Shared by a commit with a row that refers to this key by an uncommitted foreign key, and written by a commit that
    removes the key: neither makes the other fail."""
    return _hash(b"f", IndexId(table_id), _pack_u64(constraint_id) + encoded)


def change_hash(descriptor_id: DescriptorId) -> KeyHash:
    """Written by a statement that changes a descriptor, or starts a job that does: of two concurrent ones, one is
    refused."""
    return _hash(b"d", descriptor_id, b"")


def table_hash(descriptor_id: DescriptorId) -> KeyHash:
    """The key of the lock on a table."""
    return _hash(b"t", descriptor_id, b"")


def wait_hash(epoch: int, number: int) -> KeyHash:
    """Of a wait inside a node, which other nodes are shown: all that block it hold this key."""
    return _hash(b"w", epoch, _pack_u64(number))


def job_hash(job_id: int) -> KeyHash:
    """Of the wait for a job."""
    return _hash(b"j", job_id, b"")


def database_hash(descriptor_id: DescriptorId) -> KeyHash:
    """The key of the lock on a database: sessions hold it shared, DROP and RENAME exclusively."""
    return _hash(b"b", descriptor_id, b"")


def place_hash(role_id: DescriptorId, number: int) -> KeyHash:
    """The key of the lock on one of the connection slots of a role."""
    return _hash(b"p", role_id, _pack_u64(number))


def name_hash(database: str, schema: str, name: str) -> KeyHash:
    """Written by a statement that names a relation or type; those of a schema share one namespace."""
    return _hash(b"n", 0, "\0".join((database, schema, name)).encode())


def unsaid_hash(kind: str, database: str, name: str) -> KeyHash:
    """Written with the first descriptor of a schema or database that existed without one, and shared by commits that
    relied on its default privileges."""
    return _hash(b"s", 0, "\0".join((kind, database, name)).encode())


def role_hash(name: str) -> KeyHash:
    """Written by a statement that removes a role's name, and shared by commits that make the role an owner, or grant it
    privileges or members: at most one of the two commits."""
    return _hash(b"r", 0, name.encode())


def entry_hashes(index_id: IndexId, encoded: Iterable[bytes]) -> Hashes:
    return _hashes(b"e", index_id, encoded)


def unique_hashes(index_id: IndexId, encoded: Iterable[bytes]) -> Hashes:
    return _hashes(b"u", index_id, encoded)


def _hashes(space: bytes, index_id: IndexId, encoded: Iterable[bytes]) -> Hashes:
    head, digest = space + _pack_u64(index_id), xxhash.xxh3_64_intdigest
    return np.fromiter((digest(head + key) for key in encoded), np.uint64).view(np.int64)


def advisory_hash(numbers: Sequence[int]) -> KeyHash:
    """The key of an advisory lock: one number, or several in a separate key space."""
    return _hash(b"a", IndexId(len(numbers)), b"".join(number.to_bytes(8, "big", signed=True) for number in numbers))


def _hash(space: bytes, id_: int, encoded: bytes) -> KeyHash:
    digest = xxhash.xxh3_64_intdigest(space + _pack_u64(id_) + encoded)
    return KeyHash(digest - (1 << 64) if digest & _SIGN_64 else digest)


class EntryRanges:
    """Ranges of encoded keys, each [low, high), which do not overlap."""

    __slots__ = ("_highs", "_lows")

    def __init__(self, ranges: Iterable[tuple[bytes, bytes]]) -> None:
        ordered = sorted(ranges)
        self._lows = [low for low, _ in ordered]
        self._highs = [high for _, high in ordered]

    def meet(self, first: bytes, last: bytes) -> bool:
        """Whether a file with these keys at its ends may have a key in one of them."""
        place = bisect_right(self._highs, first)
        return place < len(self._lows) and self._lows[place] <= last


# Up to this many keys are inserted one by one; more are sorted with the rest.
_INSERTED_MAX = 64


class OrderedKeys:
    """Encoded keys in order, for lookups by range. They arrive one by one and are sorted on demand."""

    __slots__ = ("_arrived", "_sorted")

    def __init__(self) -> None:
        self._sorted: list[bytes] = []
        self._arrived: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Adds a key that is not present yet."""
        self._arrived.append(encoded)

    def between(self, low: bytes, high: bytes, count_max: int) -> list[bytes]:
        """The first keys with low <= key < high, at most one more than `count_max`."""
        self._sort_arrived()
        first = bisect_left(self._sorted, low)
        return self._sorted[first : min(bisect_left(self._sorted, high, first), first + count_max + 1)]

    def _sort_arrived(self) -> None:
        if len(self._arrived) > _INSERTED_MAX:
            self._sorted += self._arrived
            self._sorted.sort()
        else:
            for encoded in self._arrived:
                insort(self._sorted, encoded)
        self._arrived = []
