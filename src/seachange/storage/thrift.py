"""The part of Thrift's compact protocol that Parquet headers and footers need.

A struct is a dict from field numbers to values with their types, so that unknown fields are preserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = frozenset({I16, I32, I64})

Field = tuple[int, Any]
Struct = dict[int, Field]


@dataclass(frozen=True, slots=True)
class ListOf:
    """The items of a list, all of one type."""

    type: int
    items: list[Any]


class ThriftReader:
    """Reads values from `position` on. Raises ValueError or IndexError if the bytes are not Thrift."""

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self._data = data
        self.position = position

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while header := self._byte():
            delta, type_ = header >> 4, header & 0x0F
            number = number + delta if delta else self._integer()
            fields[number] = (type_, self._value(type_))
        return fields

    def _value(self, type_: int) -> Any:
        if type_ in _INTEGERS:
            return self._integer()
        if type_ == BINARY:
            return self._bytes(self._varint())
        if type_ == STRUCT:
            return self.struct()
        if type_ in (LIST, SET):
            return self._list()
        if type_ in (TRUE, FALSE):
            return type_ == TRUE
        if type_ == BYTE:
            return self._byte()
        if type_ == DOUBLE:
            return self._bytes(8)
        raise ValueError(f"Thrift type {type_}")

    def _list(self) -> ListOf:
        header = self._byte()
        size, type_ = header >> 4, header & 0x0F
        size = self._varint() if size == 15 else size
        # In a list a boolean is a byte of its own.
        read = self._byte if type_ in (TRUE, FALSE) else lambda: self._value(type_)
        return ListOf(type_, [read() for _ in range(size)])

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def _bytes(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        if self.position > len(self._data):
            raise ValueError("Thrift value beyond its end")
        return bytes(self._data[start : self.position])

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def encode_struct(fields: Struct) -> bytes:
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def _put_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, (type_, value) in sorted(fields.items()):
        delta = number - before
        if 0 < delta < 16:
            out.append(delta << 4 | type_)
        else:
            out.append(type_)
            _put_integer(out, number)
        _put_value(out, type_, value)
        before = number
    out.append(0)


def _put_value(out: bytearray, type_: int, value: Any) -> None:
    if type_ in _INTEGERS:
        _put_integer(out, value)
    elif type_ == BINARY:
        _put_varint(out, len(value))
        out += value
    elif type_ == STRUCT:
        _put_struct(out, value)
    elif type_ in (LIST, SET):
        _put_list(out, value)
    elif type_ == BYTE:
        out.append(value)
    elif type_ == DOUBLE:
        out += value


def _put_list(out: bytearray, value: ListOf) -> None:
    size = len(value.items)
    if size < 15:
        out.append(size << 4 | value.type)
    else:
        out.append(0xF0 | value.type)
        _put_varint(out, size)
    for item in value.items:
        _put_value(out, BYTE if value.type in (TRUE, FALSE) else value.type, item)


def _put_integer(out: bytearray, value: int) -> None:
    _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
