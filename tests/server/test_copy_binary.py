"""COPY in binary, through psycopg's codecs both ways, and files that are none."""

import datetime as dt
import struct
from decimal import Decimal
from ipaddress import ip_address, ip_network
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.serving import serving
from tests.support.wire import Wire, message, query

TYPES = {
    "i2": "int2",
    "i4": "int4",
    "i8": "int8",
    "f4": "float4",
    "f8": "float8",
    "b": "bool",
    "n": "numeric",
    "t": "text",
    "v": "varchar",
    "y": "bytea",
    "d": "date",
    "c": "time",
    "s": "timestamp",
    "z": "timestamptz",
    "u": "uuid",
    "ip": "inet",
    "w": "cidr",
    "j": "jsonb",
    "i": "interval",
    "a": "int4[]",
    "l": "text[]",
}
ROW = (
    *(-7, 1 << 20, -(1 << 40), 0.5, -1.25, True, Decimal("-123.4500"), "tab\t and ünï", "x" * 20, b"\0\xff"),
    *(dt.date(1999, 12, 31), dt.time(23, 59, 59, 999_999), dt.datetime(1970, 1, 1, 0, 0, 1)),
    dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    *(
        UUID(int=1 << 100),
        ip_address("10.0.0.1"),
        ip_network("2001:db8::/32"),
        {"k": [1, None]},
        dt.timedelta(days=3, seconds=5),
        [1, None, 3],
        ["a", 'b"c'],
    ),
)
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
            connection.execute(
                f"create table kinds (id int4 primary key, {columns})".replace("n numeric", "n numeric(12,4)")
            )
            connection.execute("create table t (id int4 primary key, name text)")
        yield served


@pytest.mark.parametrize("count", [2, 11_000])
def test_every_type_goes_in_and_out(served, count):
    rows = [(i, *(ROW if i % 2 == 0 else [None] * len(TYPES))) for i in range(count)]
    types = ["int4", *TYPES.values()]
    with psycopg.connect(served.url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("delete from kinds")
        with cursor.copy("copy kinds from stdin (format binary)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row([Jsonb(v) if isinstance(v, dict) else v for v in row])
        assert cursor.rowcount == count
        with cursor.copy("copy (select * from kinds order by id) to stdout binary") as copy:
            copy.set_types(types)
            assert list(copy.rows()) == rows
        assert cursor.rowcount == count


def row(*fields: bytes | None) -> bytes:
    parts = [struct.pack(">i", -1) if f is None else struct.pack(">i", len(f)) + f for f in fields]
    return struct.pack(">h", len(fields)) + b"".join(parts)


ONE = struct.pack(">i", 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "22P04"),
        (b"PGCOPY\n\xff\r\n\1" + bytes(8), "22P04"),
        (HEADER[:11] + b"\0\1\0\0" + bytes(4), "22P04"),
        (HEADER + row(ONE, b"a") + b"\0", "22P04"),
        (HEADER + row(ONE, b"a") + b"\xff\xff!", "22P04"),
        (HEADER + row(ONE) + b"\xff\xff", "22P04"),
        (HEADER + row(ONE, b"a", b"b") + b"\xff\xff", "22P04"),
        (HEADER + b"\0\2" + struct.pack(">i", 1 << 30), "22P04"),
        (HEADER + b"\0\2" + struct.pack(">i", -5), "22P04"),
        (HEADER + row(b"123", b"a") + b"\xff\xff", "22P03"),
        (HEADER + row(ONE, b"\xff\xfe") + b"\xff\xff", "22P03"),
        (HEADER + row(None, b"a") + b"\xff\xff", "23502"),
    ],
)
def test_invalid_binary_copy_leaves_no_row(served, data, code):
    with Wire(served.port) as wire:
        wire.send(query("copy t from stdin with (format binary)"))
        assert wire.until(b"G")[-1][1][:1] == b"\1"
        assert wire.code(message(b"d", data), message(b"c")) == code
        assert wire.rows("select count(*) from t") == [[b"0"]]


def test_no_rows_are_a_file_as_well(served):
    text = "copy (select 1 where false) to stdout binary"
    with psycopg.connect(served.url) as connection, connection.cursor() as cursor, cursor.copy(text) as copy:
        assert b"".join(copy) == HEADER + b"\xff\xff"


def test_texts_have_options_that_binary_files_have_not(served):
    with Wire(served.port) as wire:
        assert wire.code(query("copy t to stdout (format binary, header)")) == "42601"


def test_a_file_may_end_behind_a_record_without_a_trailer(served):
    """As ADBC's driver sends it."""
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table untrailed (n int)")
        record = struct.pack(">hii", 1, 4, 7)
        for ending, expected in ((b"", 2), (b"\0", None)):
            try:
                with connection.cursor().copy("copy untrailed from stdin (format binary)") as copy:
                    copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + 2 * record + ending)
            except psycopg.errors.BadCopyFileFormat:
                assert expected is None
            else:
                assert connection.execute("select count(*) from untrailed").fetchone() == (expected,)
