"""inet and cidr: values sort as in PostgreSQL, their text and binary format are read back, other input is refused."""

import ipaddress
import random

import pytest

from seachange import errors
from seachange.storage.keys import KeyCodec
from seachange.values.binary_form import decode_binary, encode_binary
from seachange.values.coercion import coerce
from seachange.values.network import CIDR, INET, is_held, read_address
from seachange.values.output_format import show_held

# In PostgreSQL's order.
SORTED = [
    "0.0.0.0/0", "9.255.0.0/8", "10.0.0.0/7", "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/16", "10.0.0.1/16", "10.0.0.0",
    "10.0.0.1", "10.1.0.0/16", "255.255.255.255", "::/0", "::", "::1", "2001:db8::/32", "2001:db8::1",
]  # fmt: skip


def test_bytes_and_keys_sort_as_in_postgres() -> None:
    held = [read_address(text) for text in SORTED]
    codec = KeyCodec([INET])
    for values in (held, [codec.encode((value,)) for value in held]):
        shuffled = list(values)
        random.Random(1).shuffle(shuffled)
        assert sorted(shuffled) == values


@pytest.mark.parametrize("text", [*SORTED, "::ffff:1.2.3.4", "::1.2.3.4", "1:0:0:2::3", "1:2:3:4:5:6:7:8/127"])
def test_values_are_shown_as_they_were_given(text: str) -> None:
    held = coerce(INET, text)
    shown = show_held(INET, held)
    assert (shown, is_held(held)) == (text, True)
    assert coerce(INET, decode_binary(INET, encode_binary(INET, shown))) == held
    assert coerce(INET, held) == held


def test_random_addresses_are_shown_as_other_programs_read_them() -> None:
    source = random.Random(7)
    for _ in range(200):
        address = ipaddress.IPv6Address(source.getrandbits(128) & source.getrandbits(128) & source.getrandbits(128))
        shown = show_held(INET, coerce(INET, address))
        assert ipaddress.IPv6Address(shown) == address


def test_network_with_host_bits_is_refused() -> None:
    assert show_held(CIDR, coerce(CIDR, "10.0.0.0/8")) == "10.0.0.0/8"
    assert coerce(CIDR, coerce(INET, "10.0.0.1/8")) == coerce(CIDR, "10.0.0.0/8")
    with pytest.raises(errors.InvalidCidr):
        coerce(CIDR, "10.0.0.1/8")


@pytest.mark.parametrize(
    "text", ["", "10.1", "10.0.0.1 ", "::1%eth0", "1.2.3.4.5", "10.0.0.1/", "/8", ":", "1.2.3.4/33"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidTextRepresentation):
        coerce(INET, text)


@pytest.mark.parametrize(
    "data", [b"", b"\x02\x20\x00\x04\x01", b"\x05\x20\x00\x04\x01\x02\x03\x04", b"\x02\x21\x00\x04\x01\x02\x03\x04"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(errors.InvalidBinaryRepresentation):
        decode_binary(INET, data)
    with pytest.raises(errors.DatatypeMismatch):
        coerce(INET, data)
