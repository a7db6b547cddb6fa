"""inet and cidr: their text as PostgreSQL reads and prints it, and functions of them.

A value is bytes whose order is PostgreSQL's: the family (4 or 6), the network with its host bits cleared, the length of
the mask, the whole address. **Invariant:** equal addresses are equal bytes, whether they are of type inet or cidr.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Any, Final

from seachange import errors
from seachange.values.types import Kind, SqlType

# An interface is an address.
AnyAddress = IPv4Address | IPv4Network | IPv6Address | IPv6Network
# Python's classes of addresses.
ADDRESSES: Final = (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)
CIDR: Final = SqlType(Kind.CIDR)
INET: Final = SqlType(Kind.INET)
_BITS: Final = {4: 32, 6: 128}
_ADDRESS: Final = re.compile(r"(?P<address>[0-9a-fA-F:.]+?)(?:/(?P<bits>[0-9]+))?", re.ASCII)
_OCTETS: Final = re.compile(r"[0-9]+(\.[0-9]+)*", re.ASCII)
_WORD_BITS: Final = 16
_MAPPED: Final = 0xFFFF
# PostgreSQL's numbers of families in the binary format.
_WIRE_FAMILIES: Final = {4: 2, 6: 3}
_FAMILIES: Final = {number: family for family, number in _WIRE_FAMILIES.items()}
_HEADER: Final = 4
# The smallest first octets of the classes of networks, with the lengths of their masks.
_CLASSES: Final = ((240, 32), (224, 8), (192, 24), (128, 16), (0, 8))
_MULTICAST: Final = 224


@dataclass(frozen=True, slots=True)
class Address:
    """`number` is the whole address, `bits` the length of its mask."""

    family: int
    number: int
    bits: int

    @property
    def size(self) -> int:
        return _BITS[self.family]

    @property
    def host_mask(self) -> int:
        return (1 << (self.size - self.bits)) - 1

    @property
    def network(self) -> int:
        return self.number & ~self.host_mask

    def as_bytes(self) -> bytes:
        width = self.size // 8
        parts = self.network.to_bytes(width, "big"), bytes([self.bits]), self.number.to_bytes(width, "big")
        return bytes([self.family]) + b"".join(parts)


def _of(held: bytes) -> Address:
    width = _BITS[held[0]] // 8
    return Address(held[0], int.from_bytes(held[-width:], "big"), held[1 + width])


def is_held(value: bytes) -> bool:
    """Whether these are the bytes of an address."""
    if not value or value[0] not in _BITS or len(value) != _BITS[value[0]] // 4 + 2:
        return False
    found = value[1 + _BITS[value[0]] // 8]
    return found <= _BITS[value[0]] and _of(value).as_bytes() == value


def read_address(text: str, type_: SqlType = INET) -> bytes:
    """
    >>> show_address(read_address("10.1.2.3/8")), show_address(read_address("::ffff:1.2.3.4"))
    ('10.1.2.3/8', '::ffff:1.2.3.4')
    """
    found = _parse(text, type_)
    if found is None:
        raise errors.InvalidTextRepresentation(type=type_, value=text)
    if type_.kind is Kind.CIDR and found.number != found.network:
        raise errors.InvalidCidr(value=text)
    return found.as_bytes()


def read_network(text: str) -> bytes:
    """
    >>> show_network(read_network("10")), show_network(read_network("192.168.1/24"))
    ('10.0.0.0/8', '192.168.1.0/24')
    """
    return read_address(text, CIDR)


def _parse(text: str, type_: SqlType) -> Address | None:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return None
    bits = None if match["bits"] is None else int(match["bits"])
    if ":" not in text:
        return _parse_four(match["address"], bits, type_.kind is Kind.CIDR)
    try:
        number = int(IPv6Address(match["address"]))
    except ValueError:
        return None
    bits = _BITS[6] if bits is None else bits
    return Address(6, number, bits) if bits <= _BITS[6] else None


def _parse_four(text: str, bits: int | None, is_network: bool) -> Address | None:
    """Trailing octets may be left out where the mask is given, and in a network."""
    if _OCTETS.fullmatch(text) is None:
        return None
    octets = [int(octet) for octet in text.split(".")]
    if len(octets) > 4 or max(octets) > 255 or (bits is not None and bits > _BITS[4]):
        return None
    if bits is None:
        if not is_network and len(octets) < 4:
            return None
        bits = _class_bits(octets) if is_network else _BITS[4]
    if not is_network and bits // 8 > len(octets):
        return None
    return Address(4, int.from_bytes(bytes(octets).ljust(4, b"\0"), "big"), bits)


def _class_bits(octets: list[int]) -> int:
    bits = next(bits for first, bits in _CLASSES if octets[0] >= first)
    bits = max(bits, len(octets) * 8)
    return 4 if bits == 8 and octets[0] == _MULTICAST else bits


def show_address(held: bytes) -> str:
    """As a value of type inet is printed: without the mask of a single host."""
    found = _of(held)
    return host(held) if found.bits == found.size else full_text(held)


def full_text(held: bytes) -> str:
    """With the mask in any case, as a value of type cidr is printed."""
    return f"{host(held)}/{_of(held).bits}"


show_network = full_text


def as_given(type_: SqlType, held: bytes) -> AnyAddress:
    """What clients get: a network, an address, or with a mask an interface."""
    if type_.kind is Kind.CIDR:
        return ip_network(show_network(held))
    found, text = _of(held), show_address(held)
    return ip_address(text) if found.bits == found.size else ip_interface(text)


def host(held: bytes) -> str:
    found = _of(held)
    if found.family == 4:
        return ".".join(map(str, found.number.to_bytes(4, "big")))
    return _show_six(found.number)


def _words(number: int) -> list[int]:
    return [number >> (_WORD_BITS * (7 - place)) & _MAPPED for place in range(8)]


def _show_six(number: int) -> str:
    words = _words(number)
    start, length = _longest_zeros(words)
    holds_four = start == 0 and (
        length == 6 or (length == 7 and words[7] != 1) or (length == 5 and words[5] == _MAPPED)
    )
    if holds_four:
        octets = ".".join(map(str, (number & 0xFFFFFFFF).to_bytes(4, "big")))
        return f"::ffff:{octets}" if length == 5 else f"::{octets}"
    texts = [f"{word:x}" for word in words]
    if length < 2:
        return ":".join(texts)
    return ":".join(texts[:start]) + "::" + ":".join(texts[start + length :])


def _longest_zeros(words: list[int]) -> tuple[int, int]:
    """Where the longest run of zeros starts, the first of several, and its length."""
    best, start = (0, 0), 0
    for place, word in enumerate([*words, 1]):
        if word:
            best = (start, place - start) if place - start > best[1] else best
            start = place + 1
    return best


def abbreviate(held: bytes) -> str:
    """abbrev(cidr): without octets behind the mask."""
    found = _of(held)
    if found.family == 4:
        octets = found.network.to_bytes(4, "big")[: max(-(-found.bits // 8), 1)]
        return f"{'.'.join(map(str, octets))}/{found.bits}"
    count = max(-(-found.bits // _WORD_BITS), 2) if found.bits else 0
    words = _words(found.network)[:count]
    start, length = _longest_zeros(words)
    if not words:
        return f"::/{found.bits}"
    if not length:
        return f"{':'.join(f'{word:x}' for word in words)}/{found.bits}"
    texts = [f"{word:x}" for word in words]
    shown = ":".join(texts[:start]) + "::" + ":".join(texts[start + length :])
    return f"{shown}/{found.bits}"


def family(held: bytes) -> int:
    return held[0]


def mask_length(held: bytes) -> int:
    return _of(held).bits


def network(held: bytes) -> bytes:
    found = _of(held)
    return Address(found.family, found.network, found.bits).as_bytes()


def broadcast(held: bytes) -> bytes:
    found = _of(held)
    return Address(found.family, found.number | found.host_mask, found.bits).as_bytes()


def net_mask(held: bytes) -> bytes:
    found = _of(held)
    return Address(found.family, (1 << found.size) - 1 - found.host_mask, found.size).as_bytes()


def host_mask(held: bytes) -> bytes:
    found = _of(held)
    return Address(found.family, found.host_mask, found.size).as_bytes()


def set_mask_length(held: bytes, bits: int) -> bytes:
    found = _of(held)
    bits = found.size if bits == -1 else bits
    if not 0 <= bits <= found.size:
        raise errors.InvalidParameterValue(detail=f"invalid mask length: {bits}")
    return Address(found.family, found.number, bits).as_bytes()


def set_network_length(held: bytes, bits: int) -> bytes:
    return network(set_mask_length(held, bits))


def is_within(one: bytes, other: bytes) -> bool:
    """one << other"""
    return _of(one).bits > _of(other).bits and overlaps(one, other)


def is_within_or_equal(one: bytes, other: bytes) -> bool:
    """one <<= other"""
    return _of(one).bits >= _of(other).bits and overlaps(one, other)


def overlaps(one: bytes, other: bytes) -> bool:
    first, second = _of(one), _of(other)
    shift = first.size - min(first.bits, second.bits)
    return first.family == second.family and first.number >> shift == second.number >> shift


def have_same_family(one: bytes, other: bytes) -> bool:
    return one[0] == other[0]


def merge(one: bytes, other: bytes) -> bytes:
    """The smallest network that has both."""
    first, second = _same_family(one, other, "cannot merge addresses from different families")
    bits = min(first.bits, second.bits)
    while first.number >> (first.size - bits) != second.number >> (first.size - bits):
        bits -= 1
    return network(Address(first.family, first.number, bits).as_bytes())


def _same_family(one: bytes, other: bytes, detail: str) -> tuple[Address, Address]:
    first, second = _of(one), _of(other)
    if first.family != second.family:
        raise errors.InvalidParameterValue(detail=detail)
    return first, second


def invert(held: bytes) -> bytes:
    found = _of(held)
    return Address(found.family, (1 << found.size) - 1 - found.number, found.bits).as_bytes()


def both(one: bytes, other: bytes) -> bytes:
    first, second = _same_family(one, other, "cannot AND inet values of different sizes")
    return Address(first.family, first.number & second.number, max(first.bits, second.bits)).as_bytes()


def either(one: bytes, other: bytes) -> bytes:
    first, second = _same_family(one, other, "cannot OR inet values of different sizes")
    return Address(first.family, first.number | second.number, max(first.bits, second.bits)).as_bytes()


def shift(held: bytes, distance: int) -> bytes:
    found = _of(held)
    number = found.number + distance
    if not 0 <= number < 1 << found.size:
        raise errors.NumericValueOutOfRange(type="inet", value=f"{show_address(held)} + {distance}")
    return Address(found.family, number, found.bits).as_bytes()


def distance(one: bytes, other: bytes) -> int:
    first, second = _same_family(one, other, "cannot subtract inet values of different sizes")
    found = first.number - second.number
    if not -(1 << 63) <= found < 1 << 63:
        raise errors.NumericValueOutOfRange(type="bigint", value=str(found))
    return found


def read_bits(text: str) -> bytes:
    """From DuckDB's text of a value, its bits."""
    return int(text, 2).to_bytes(len(text) // 8, "big")


def show_bits(text: str) -> str:
    return show_address(read_bits(text))


def encode_address(type_: SqlType, value: Any) -> bytes:
    """PostgreSQL's binary format, from the value that clients see."""
    found = _of(read_address(str(value), type_))
    address = found.number.to_bytes(found.size // 8, "big")
    header = (_WIRE_FAMILIES[found.family], found.bits, type_.kind is Kind.CIDR, len(address))
    return bytes(header) + address


def decode_address(type_: SqlType, data: bytes) -> AnyAddress:
    """The inverse; raises ValueError. Whether it is a cidr, which data says too, is not looked at, as in PostgreSQL."""
    family = _FAMILIES.get(data[0])
    if family is None or data[3] != _BITS[family] // 8 or len(data) != _HEADER + data[3] or data[1] > _BITS[family]:
        raise ValueError("no address")
    return as_given(type_, Address(family, int.from_bytes(data[_HEADER:], "big"), data[1]).as_bytes())
