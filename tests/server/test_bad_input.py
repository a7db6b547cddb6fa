"""For any input, the server and its other clients continue."""

import socket
import struct
from collections.abc import Iterable
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


def _frames(parts: Iterable[bytes], started: bool = True) -> list[m.MessageFrame | None]:
    """What is read of a stream, up to an error. Successive pieces of copied data are one."""
    reader = m.FrameReader()
    found: list[m.MessageFrame | None] = []
    reader.is_started = started
    try:
        for part in parts:
            reader.feed(part)
            while (frame := reader.next()) is not None:
                before = found[-1] if found else None
                if before is not None and before.kind == frame.kind == b"d":
                    found[-1] = m.MessageFrame(b"d", before.body + frame.body)
                else:
                    found.append(frame)
    except errors.ProtocolViolation:
        found.append(None)
    return found


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=30), max_size=5), st.booleans())
def test_frames_do_not_depend_on_how_bytes_come(pieces, started):
    joined = b"".join(pieces)
    assert _frames(pieces, started) == _frames([joined], started)
    assert _frames([joined[i : i + 1] for i in range(len(joined))], started) == _frames([joined], started)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(b"ddddcS"), st.binary(max_size=9))), st.integers(1, 40), st.integers(-5, 5))
def test_copied_data_does_not_depend_on_its_messages(given_, step, wrong):
    stream = b"".join(bytes([kind]) + struct.pack(">i", len(body) + 4) + body for kind, body in given_)
    stream += b"d" + struct.pack(">i", wrong)
    expected = _frames(stream[i : i + 1] for i in range(len(stream)))
    assert _frames(stream[i : i + step] for i in range(0, len(stream), step)) == expected
    assert b"".join(f.body for f in expected if f and f.kind == b"d") == b"".join(b for k, b in given_ if k == ord("d"))


def test_successive_messages_of_copied_data_are_read_as_one():
    reader = m.FrameReader()
    reader.is_started = True
    reader.feed(b"d\0\0\0\5a" * 3 + b"c\0\0\0\4" + b"d\0\0\0\6x")
    assert [reader.next(), reader.next(), reader.next()] == [(b"d", b"aaa"), (b"c", b""), None]


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
