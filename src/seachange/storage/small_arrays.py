"""Arrow arrays of a few values, built from their bytes, and the values of arrays.

`pa.array` checks whether its input is a pandas object, and imports pandas for that if it is installed: a third of a
second of CPU time, for the first row that a process writes. `to_pylist` does so for timestamps with time zone.

**Invariant:** the array equals the one that `pa.array` makes. Values that are not exactly of its class, or do not fit,
are passed to `pa.array`, which converts them or raises the error.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import accumulate
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# For more values `pa.array` is faster, and such a process usually runs for longer.
FEW = 64

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_DECIMAL_BYTES = 16
_ZONED = pa.timestamp("us", tz="UTC")


class Unfit(Exception):
    """The values need `pa.array`."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How values of a class become the buffers of an array, without the validity buffer; `blank` stands for NULL."""

    class_: type
    blank: object
    fill: Callable[[Sequence[Any]], list[bytes]]
    buffers: int = 1

    def pack(self, values: Sequence[Any]) -> list[bytes]:
        class_ = self.class_
        for value in values:
            if type(value) is not class_:
                raise Unfit
        try:
            return self.fill(values)
        except (struct.error, OverflowError, UnicodeEncodeError):
            raise Unfit from None


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """An array of values of one type, and None."""
    packing = packing_of(type_)
    if packing is None or len(values) > FEW:
        return pa.array(values, type_)
    present = [value is not None for value in values]
    given = values if all(present) else [packing.blank if value is None else value for value in values]
    try:
        buffers = packing.pack(given)
    except Unfit:
        return pa.array(values, type_)
    validity = None if given is values else pa.py_buffer(bits_of(present))
    held = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    array = pa.Array.from_buffers(held, len(values), [validity, *map(pa.py_buffer, buffers)])
    return array if held is type_ else pa.ExtensionArray.from_storage(type_, array)


def values_of(array: pa.Array) -> list[Any]:
    if array.type != _ZONED:
        return list(array.to_pylist())
    local = array.view(pa.timestamp("us")).to_pylist()
    return [None if value is None else value.replace(tzinfo=dt.UTC) for value in local]


def mask_of(flags: NDArray[np.bool_]) -> pa.BooleanArray:
    """For any number of flags."""
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits_of(flags))])


def packing_of(type_: pa.DataType) -> Packing | None:
    if pa.types.is_decimal128(type_):
        return Packing(Decimal, Decimal(0), partial(_pack_decimals, type_))
    return _PACKINGS.get(type_)


def bits_of(flags: NDArray[np.bool_] | Sequence[bool]) -> bytes:
    if len(flags) > FEW:
        return np.packbits(np.asarray(flags, bool), bitorder="little").tobytes()
    number = sum(1 << place for place, flag in enumerate(flags) if flag)
    return number.to_bytes((len(flags) + 7) // 8, "little")


def _pack_bits(values: Sequence[bool]) -> list[bytes]:
    return [bits_of(values)]


def _pack_numbers(code: str, values: Iterable[float]) -> list[bytes]:
    numbers = tuple(values)
    return [struct.pack(f"<{len(numbers)}{code}", *numbers)]


def _pack_bytes(values: Sequence[bytes]) -> list[bytes]:
    return [*_pack_numbers("i", accumulate(map(len, values), initial=0)), b"".join(values)]


def _pack_texts(values: Sequence[str]) -> list[bytes]:
    return _pack_bytes([value.encode() for value in values])


def _pack_uuids(values: Sequence[UUID]) -> list[bytes]:
    return [b"".join(value.bytes for value in values)]


def _pack_decimals(type_: pa.Decimal128Type, values: Sequence[Decimal]) -> list[bytes]:
    numbers = (_unscaled(value, type_) for value in values)
    return [b"".join(number.to_bytes(_DECIMAL_BYTES, "little", signed=True) for number in numbers)]


def _unscaled(value: Decimal, type_: pa.Decimal128Type) -> int:
    if not value.is_finite():
        raise Unfit
    over, under = value.as_integer_ratio()
    number, rest = divmod(over * 10**type_.scale, under)
    if rest or abs(number) >= 10**type_.precision:
        raise Unfit
    return int(number)


def _pack_days(values: Sequence[dt.date]) -> list[bytes]:
    return _pack_numbers("i", (value.toordinal() - _EPOCH_DAY for value in values))


def _pack_times(values: Sequence[dt.time]) -> list[bytes]:
    seconds = ((value.hour * 60 + value.minute) * 60 + value.second for value in values)
    return _pack_numbers("q", (s * 1_000_000 + value.microsecond for s, value in zip(seconds, values, strict=True)))


def _pack_moments(values: Sequence[dt.datetime]) -> list[bytes]:
    """A value without a zone is taken as UTC."""
    zoned = (value if value.tzinfo else value.replace(tzinfo=dt.UTC) for value in values)
    return _pack_numbers("q", ((value - _EPOCH) // _MICROSECOND for value in zoned))


_MOMENT = Packing(dt.datetime, _EPOCH, _pack_moments)
# The types of stored values, except arrays and decimals.
_PACKINGS: dict[pa.DataType, Packing] = {
    pa.bool_(): Packing(bool, False, _pack_bits),
    pa.int8(): Packing(int, 0, partial(_pack_numbers, "b")),
    pa.int16(): Packing(int, 0, partial(_pack_numbers, "h")),
    pa.int32(): Packing(int, 0, partial(_pack_numbers, "i")),
    pa.int64(): Packing(int, 0, partial(_pack_numbers, "q")),
    pa.uint32(): Packing(int, 0, partial(_pack_numbers, "I")),
    pa.float32(): Packing(float, 0.0, partial(_pack_numbers, "f")),
    pa.float64(): Packing(float, 0.0, partial(_pack_numbers, "d")),
    pa.string(): Packing(str, "", _pack_texts, buffers=2),
    pa.binary(): Packing(bytes, b"", _pack_bytes, buffers=2),
    pa.date32(): Packing(dt.date, dt.date(1970, 1, 1), _pack_days),
    pa.time64("us"): Packing(dt.time, dt.time(), _pack_times),
    pa.timestamp("us"): _MOMENT,
    _ZONED: _MOMENT,
    pa.uuid(): Packing(UUID, UUID(int=0), _pack_uuids),
}
