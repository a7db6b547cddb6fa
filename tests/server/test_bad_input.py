"""For any input, the server and its other clients continue."""

import socket
import struct
from contextlib import suppress

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.server import messages as m
from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, serving

READERS = (m.read_startup, m.read_cancel, m.read_parse, m.read_bind, m.read_named, m.read_execute, m.read_text)


def startup() -> bytes:
    body = struct.pack(">hh", 3, 0) + b"user\0seachange\0\0"
    return struct.pack(">i", len(body) + 4) + body


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


@settings(max_examples=500)
@given(st.sampled_from((*READERS, m.read_sasl_start)), st.binary(max_size=80))
def test_reading_ends_with_a_value_or_an_error(read, body):
    with suppress(errors.ProtocolViolation, errors.InvalidByteSequence, errors.InvalidParameterValue):
        read(body)


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=30), max_size=5), st.booleans())
def test_frames_do_not_depend_on_how_bytes_come(pieces, started):
    def frames(parts):
        reader = m.FrameReader()
        found: list[m.MessageFrame | None] = []
        reader.is_started = started
        try:
            for part in parts:
                reader.feed(part)
                while (frame := reader.next()) is not None:
                    found.append(frame)
        except errors.ProtocolViolation:
            found.append(None)
        return found

    joined = b"".join(pieces)
    assert frames(pieces) == frames([joined[i : i + 1] for i in range(len(joined))]) == frames([joined])


MESSAGES = st.lists(
    st.tuples(st.sampled_from(b"QPBDECHSXdcfpFz\0"), st.binary(max_size=40)).map(
        lambda pair: bytes([pair[0]]) + struct.pack(">i", len(pair[1]) + 4) + pair[1]
    ),
    max_size=8,
).map(b"".join)


@settings(max_examples=60)
@given(st.one_of(MESSAGES, st.binary(max_size=200)))
def test_invalid_bytes_end_at_most_their_connection(served, data):
    with socket.create_connection((HOST, served.port), PATIENCE_S) as raw:
        raw.sendall(startup() + data)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack(">i", 0),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">ihh", 8, 2, 0),
        startup()[:-3],
        startup() + b"Q" + struct.pack(">i", 2**31 - 1),
        startup() + b"Q" + struct.pack(">i", 100) + b"select",
        startup() + b"Q" + struct.pack(">i", 8) + b"\xff\xfe\xfd\0",
    ],
)
def test_truncated_and_oversized_packets(served, data):
    with socket.create_connection((HOST, served.port), PATIENCE_S) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass
    with psycopg.connect(served.url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_many_statements_before_a_sync_are_answered(served):
    with socket.create_connection((HOST, served.port), PATIENCE_S) as raw:
        parse = b"P" + struct.pack(">i", 4 + 1 + 9 + 2) + b"\0select 1\0" + b"\0\0"
        raw.sendall(startup() + parse * 20_000 + b"S\0\0\0\4" + b"X\0\0\0\4")
        received = b""
        while data := raw.recv(1 << 20):
            received += data
    assert received.count(b"1\0\0\0\4") == 20_000


def test_too_many_result_columns():
    fields = [m.Field("one", 23, 4, -1, 0)] * 32_768
    assert len(m.row_description(fields[1:])) > 32_767 * 18
    for tell in (lambda: m.row_description(fields), lambda: m.copy_response(b"H", len(fields), 0)):
        with pytest.raises(errors.ProgramLimitExceeded):
            tell()
