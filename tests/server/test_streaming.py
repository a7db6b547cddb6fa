"""Large results: streamed in bounded memory, to readers that may be slow or disconnect."""

import socket

import psycopg
import pytest

from seachange.runtime.process import resident_bytes
from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, serving
from tests.support.wire import SYNC, Wire, bind, execute, parse, query, startup

ROWS = 400_000
WIDE = f"select i, repeat('x', 250) from generate_series(1, {ROWS}) as s(i)"
GROWTH_BYTES_MAX = 48 << 20


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("streaming")) as served:
        yield served


@pytest.fixture
def connection(served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        yield connection


def receive(peer: socket.socket, end: bytes) -> tuple[int, int]:
    """Reads up to the end of the responses; returns the number of bytes, and the maximum growth of the process."""
    before = resident_bytes()
    count, grown, tail = 0, 0, b""
    while not tail.endswith(end):
        data = peer.recv(1 << 18)
        assert data, "the server has closed the connection"
        count, tail = count + len(data), (tail + data)[-64:]
        grown = max(grown, resident_bytes() - before)
    return count, grown


@pytest.mark.parametrize("statement", [WIDE, f"copy ({WIDE}) to stdout (format binary)"])
def test_memory_does_not_grow_with_the_result(served, statement):
    ready = b"Z\0\0\0\5I"
    with socket.create_connection((HOST, served.port), PATIENCE_S) as peer:
        peer.sendall(startup())
        receive(peer, ready)
        # What the first query of a process loads does not count.
        peer.sendall(query(statement.replace(str(ROWS), "20000")))
        receive(peer, ready)
        peer.sendall(query(statement))
        count, grown = receive(peer, ready)
    assert count > ROWS * 250
    assert grown < GROWTH_BYTES_MAX < count / 2


@pytest.mark.parametrize("binary", [False, True])
def test_every_row_arrives(connection, binary):
    text = f"select i, i * 0.5::float8, case when i % 3 > 0 then 'word ' || i end from generate_series(1, {ROWS}) s(i)"
    rows = connection.cursor(binary=binary).stream(text)
    for number, row in enumerate(rows, 1):
        assert row == (number, number * 0.5, f"word {number}" if number % 3 else None)
    assert number == ROWS
    cursor = connection.execute(text, binary=binary)
    assert (cursor.rowcount, len(cursor.fetchall())) == (ROWS, ROWS)


def test_moments_are_shown_in_the_zone_of_the_session(connection):
    connection.execute("set timezone = 'Asia/Tokyo'")
    text = "select '2024-01-01 00:00:00+00'::timestamptz from generate_series(1, 5000)"
    shown = {row[0].isoformat() for row in connection.execute(text)}
    connection.execute("reset timezone")
    assert shown == {"2024-01-01T09:00:00+09:00"}


def test_an_error_in_the_middle(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("select 1 / (300000 - i) from generate_series(1, 400000) as s(i)")
    assert connection.execute("select 2").fetchone() == (2,)


def test_cancel_while_the_client_does_not_read(connection):
    rows = connection.cursor().stream("select repeat('x', 1000) from generate_series(1, 10000000)")
    next(rows)
    connection.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        for _ in rows:
            pass
    assert connection.execute("select 2").fetchone() == (2,)


def test_statement_timeout_while_the_client_does_not_read(connection):
    connection.execute("set statement_timeout = '200ms'")
    rows = connection.cursor().stream("select repeat('x', 1000) from generate_series(1, 10000000)")
    with pytest.raises(psycopg.errors.QueryCanceled):
        for _ in rows:
            pass
    connection.execute("reset statement_timeout")


def test_a_reader_that_goes_leaves_nothing_running(served, connection):
    other = psycopg.connect(served.url, autocommit=True)
    rows = other.cursor().stream("select repeat('x', 1000) from generate_series(1, 10000000)")
    next(rows)
    socket.socket(fileno=other.pgconn.socket).close()
    other.pgconn.finish()
    del rows
    assert connection.execute("select 2").fetchone() == (2,)
    # The statement ends, or the server would not stop within its grace: the fixture does that.


def test_rows_that_are_fetched_later_lie_in_a_file(served, connection):
    connection.execute("select 1 from generate_series(1, 20000)").fetchall()
    before = resident_bytes()
    with connection.transaction(), connection.cursor(name="c", scrollable=True) as cursor:
        cursor.itersize = 5000
        cursor.execute(WIDE)
        assert [row[0] for row in cursor.fetchmany(3000)] == list(range(1, 3001))
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        cursor.scroll(ROWS - 10, mode="absolute")
        assert [row[0] for row in cursor.fetchall()] == list(range(ROWS - 9, ROWS + 1))
        back = connection.execute('fetch backward 5000 from "c"').fetchall()
        assert [row[0] for row in back] == list(range(ROWS, ROWS - 5000, -1))
        connection.execute('move absolute 0 in "c"')
        everything = connection.cursor().stream('fetch all from "c"')
        assert sum(row[0] for row in everything) == ROWS * (ROWS + 1) // 2
        assert resident_bytes() - before < GROWTH_BYTES_MAX


def test_a_portal_that_gives_some_rows_at_a_time(served):
    with Wire(served.port) as wire:
        text = "select i from generate_series(1, 10000) as s(i)"
        wire.send(query("begin") + parse(text) + bind() + execute(rows_max=4000) + execute(rows_max=4000) + execute())
        wire.send(SYNC)
        wire.until(b"Z")
        kinds = [kind for kind, _ in wire.until(b"Z")]
        assert [kinds.count(kind) for kind in (b"D", b"s", b"C")] == [10_000, 2, 1]


def test_temporary_space_is_bounded(tmp_path):
    (tmp_path / "seachange.toml").write_text('[seachange]\ntemp_space_limit = "2MB"\n')
    with serving(tmp_path) as served, psycopg.connect(served.url) as connection:
        with pytest.raises(psycopg.errors.DiskFull), connection.cursor(name="c") as cursor:
            cursor.execute(WIDE)
        connection.rollback()
        assert connection.execute("select 2").fetchone() == (2,)
