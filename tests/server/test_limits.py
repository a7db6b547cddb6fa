"""Limits of a client: exceeding one is an error with a code, and others do not notice."""

import socket
import threading
import time
from contextlib import suppress

import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving
from tests.support.wire import SYNC, TERMINATE, Wire, fields, message, parse, query, startup

SETTINGS = """
[seachange]
max_prepared_statements = 5
max_message_size = "64kB"
memory_limit = "24MB"
temp_space_limit = "2MB"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "seachange.toml").write_text(SETTINGS)
    with serving(folder) as served:
        yield served


def is_served(served: Served) -> bool:
    with Wire(served.port) as other:
        return other.rows("select 1") == [[b"1"]]


def last_words(wire: Wire) -> str:
    """The SQLSTATE with which the server closes an idle connection."""
    ((kind, body),) = wire.until(b"E")
    assert kind == b"E"
    assert fields(body)["S"] == "FATAL"
    assert wire.receive() is None
    return fields(body)["C"]


def test_idle_in_transaction_timeout(served):
    with Wire(served.port) as other, Wire(served.port) as silent:
        other.round(query("create table t (id int primary key)"))
        silent.round(query("set idle_in_transaction_session_timeout = 150"))
        silent.round(query("begin; insert into t values (1)"))
        assert last_words(silent) == "25P03"
        # What it held is free.
        assert other.code(query("insert into t values (1)")) is None
        assert other.rows("select count(*) from t") == [[b"1"]]


def test_idle_block_with_a_schema_change_ends_and_leaves_nothing_hidden(served):
    hidden = "select name from seachange.descriptors where element = 'index' and state <> 'PUBLIC'"
    with Wire(served.port) as other, Wire(served.port) as silent:
        other.round(query("create table filled (id int primary key, n int); insert into filled values (1, 1)"))
        silent.round(query("begin; create index filled_n on filled (n)"))
        assert other.rows(hidden) == [[b"filled_n"]]
        silent.round(query("set idle_in_transaction_session_timeout = 150"))
        assert last_words(silent) == "25P03"
        assert other.rows(hidden) == []
        assert other.rows("select status from seachange.jobs order by id desc limit 1") == [[b"canceled"]]
        # Its name and its table are free.
        assert other.code(query("create index filled_n on filled (n)")) is None


def test_idle_session_timeout(served):
    options = "-c idle_session_timeout=150 -c idle_in_transaction_session_timeout=1"
    with Wire(served.port, options=options) as silent:
        assert last_words(silent) == "57P05"
    assert is_served(served)


def stays(served: Served, silence_s: float) -> bool:
    """Whether a client stays connected that is never idle for that long, except where it may be."""
    options = f"-c idle_session_timeout={silence_s * 1000:.0f}"
    with suppress(ConnectionError), Wire(served.port, options=options) as busy, Wire(served.port) as other:
        for _ in range(4):
            time.sleep(silence_s / 3)
            if busy.rows("select 1") != [[b"1"]]:
                return False
        # Longer than the silence that there may be.
        other.round(query("select pg_advisory_lock(1)"))
        busy.send(query("select pg_advisory_lock(1)"))
        time.sleep(silence_s * 1.5)
        other.round(query("select pg_advisory_unlock(1)"))
        if busy.until(b"Z")[-1] != (b"Z", b"I"):
            return False
        busy.round(query("set idle_session_timeout = 0"))
        time.sleep(silence_s * 1.5)
        return busy.rows("select 1") == [[b"1"]]
    return False


def test_a_client_that_talks_or_takes_long_is_not_silent(served):
    """On a busy machine an active client may be idle for longer than intended: it is retried with more time."""
    assert any(stays(served, silence_s) for silence_s in (0.3, 3, 30))


def test_a_log_in_has_to_be_made_in_time(tmp_path):
    (tmp_path / "seachange.toml").write_text('authentication_timeout = "300ms"')
    with serving(tmp_path) as served, socket.create_connection((HOST, served.port), PATIENCE_S) as slow:
        slow.sendall(startup()[:5])
        answer = slow.recv(1000)
        assert answer[:1] == b"E"
        assert b"57014" in answer
        assert slow.recv(1000) == b""


def test_one_statement_too_many(served):
    with Wire(served.port) as wire:
        for i in range(5):
            wire.send(parse("select 1", f"s{i}"))
        assert wire.code(SYNC) is None
        assert wire.code(parse("select 1", "s5"), SYNC) == "53400"
        wire.round(query("deallocate s0"))
        assert wire.code(parse("select 1", "s5"), SYNC) is None


def test_a_message_that_is_too_large_ends_its_connection(served):
    with Wire(served.port) as wire:
        assert wire.code(query("select '" + "x" * 70_000 + "'")) == "08P01"
    assert is_served(served)


@pytest.mark.parametrize(
    "text",
    [
        "select max(n) from (select row_number() over (order by md5(x::text)) as n from generate_series(1, {}) s(x)) q",
        "select array_agg(x) from generate_series(1, {}) s(x)",
    ],
)
def test_a_query_that_takes_too_much_memory_or_space_fails_alone(served, text):
    with psycopg.connect(served.url) as connection, psycopg.connect(served.url) as other:
        other.execute("select 1")
        with pytest.raises(psycopg.errors.OutOfMemory) as caught:
            connection.execute(text.format(4_000_000))
        assert "seachange.memory_limit" in (caught.value.diag.message_hint or "")
        assert other.execute("select 1").fetchone() == (1,)
        connection.rollback()
        assert connection.execute("select 1").fetchone() == (1,)


def test_the_time_of_a_statement_is_bounded_though_its_client_sends_nothing(served):
    with Wire(served.port) as wire:
        wire.round(query("create table c (id int)"))
        # A machine that is too busy to ask for rows in time is given more.
        for limit_ms in (200, 10_000, 300_000):
            wire.round(query(f"set statement_timeout = {limit_ms}"))
            wire.send(query("copy c from stdin"))
            kind, _ = wire.until(b"G", b"Z")[-1]
            if kind == b"G":
                break
        assert kind == b"G"
        assert wire.code() == "57014"
        wire.round(query("set statement_timeout = 0"))
        assert wire.rows("select count(*) from c") == [[b"0"]]


LONG = query("copy (select repeat('x', 1000) from generate_series(1, 200000)) to stdout")
SHORT = query("select repeat('x', 60000)") * 300


@pytest.mark.parametrize(("data", "first"), [(LONG, b"d"), (SHORT, b"D")], ids=["one result", "many short ones"])
def test_what_is_on_its_way_to_a_client_that_does_not_read_is_bounded(served, data, first):
    with Wire(served.port) as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.send(data)
        deaf.until(first)
        (client,) = served.server._clients
        stuck = threading.Event()
        while not stuck.is_set():
            written = client._transport.get_write_buffer_size()
            stuck.wait(0.2)
            if written and client._transport.get_write_buffer_size() == written:
                stuck.set()
        assert written < 2 << 20
        assert is_served(served)
    assert is_served(served)


def test_a_session_goes_back_to_what_its_client_began_with(served):
    with Wire(served.port, options="-c statement_timeout=5s") as wire:
        wire.round(query("set statement_timeout = 0"))
        wire.round(query("discard all"))
        assert wire.rows("show statement_timeout") == [[b"5s"]]
        wire.round(query("set statement_timeout = 0"))
        wire.round(query("reset statement_timeout"))
        assert wire.rows("show statement_timeout") == [[b"5s"]]


def test_terminate_during_copy_closes_the_connection(served):
    with Wire(served.port) as wire:
        wire.round(query("create table leaving (id int)"))
        wire.send(query("copy leaving from stdin"), message(b"d", b"1\n"), TERMINATE)
        wire.until(b"@")
        assert wire.receive() is None
    with Wire(served.port) as other:
        assert other.rows("select count(*) from leaving") == [[b"0"]]
