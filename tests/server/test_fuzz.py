"""Thousands of invalid messages: a connection may die; the server, other connections and the data never."""

import socket
import struct
import threading
from random import SystemRandom

import psycopg
import pytest

from seachange import errors
from tests.server.fuzzing import Fuzzer
from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving
from tests.support.wire import SYNC, TERMINATE, Wire, parse, startup

MESSAGES = 25
# A client that stops in the middle of a message is disconnected soon.
OPTIONS = " ".join(
    f"-c {name}={ms}"
    for name, ms in {
        "statement_timeout": 500,
        "lock_timeout": 100,
        "idle_session_timeout": 100,
        "idle_in_transaction_session_timeout": 100,
    }.items()
)
RESULT = [(1, "kept"), (2, "kept")]


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute("create table guarded (id int primary key, word text)")
            connection.execute("insert into guarded values (1, 'kept'), (2, 'kept')")
            connection.execute("create table own (id int primary key, word text)")
            connection.execute("create role stranger login")
            connection.execute("grant all on own to stranger")
        yield served


def talk(served: Served, data: bytes) -> None:
    """Sends everything while reading the responses, up to the end."""
    with socket.create_connection((HOST, served.port), PATIENCE_S) as raw:

        def send() -> None:
            try:
                raw.sendall(startup(user="stranger", options=OPTIONS) + data)
            except OSError:
                # The server may close the connection.
                return

        sender = threading.Thread(target=send)
        sender.start()
        try:
            while raw.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        sender.join()


def fuzz(served: Served, seed: int, rounds: int) -> None:
    with psycopg.connect(served.url, autocommit=True) as bystander:
        for number in range(rounds):
            data = Fuzzer(seed + number).conversation(MESSAGES)
            talk(served, data + SYNC + TERMINATE)
            if number % 20 == 0:
                found = bystander.execute("select * from guarded order by id").fetchall()
                assert found == RESULT, f"seed {seed + number}"
        assert bystander.execute("select * from guarded order by id").fetchall() == RESULT
    # Most messages were handled, and not all of them were invalid.
    ended = {command: each.read().count for command, each in served.node.parts.meters.statements.items()}
    failures = served.node.parts.meters.failures.read()
    assert ended["SELECT"] > rounds / 2
    assert failures["42501"] > 0
    assert errors.Bug.sqlstate not in failures
    # No client is left: all that they held is free.
    with Wire(served.port) as other:
        assert other.rows("select pg_try_advisory_lock(1)") == [[b"t"]]


def test_corrupted_messages_do_not_disturb_other_clients(served):
    fuzz(served, seed=20_240_229, rounds=120)


@pytest.mark.slow
def test_a_hundred_thousand_corrupted_messages(served):
    seed = SystemRandom().randrange(1 << 40)
    print(f"seed {seed}")
    fuzz(served, seed, rounds=100_000 // MESSAGES)


@pytest.mark.slow
def test_a_hundred_thousand_statements_before_a_sync(served):
    with Wire(served.port) as wire:
        sender = threading.Thread(target=wire.send, args=[parse("select 1") * 100_000 + SYNC])
        sender.start()
        assert len(wire.until(b"Z")) == 100_001
        sender.join()


def test_slow_message_is_handled_and_delays_no_other(served):
    with Wire(served.port) as slow, Wire(served.port) as other:
        for byte in parse("select 1") + SYNC:
            slow.send(bytes([byte]))
            assert other.rows("select 1") == [[b"1"]]
        assert [kind for kind, _ in slow.until(b"Z")] == [b"1", b"Z"]


def test_incomplete_message_blocks_no_other(served):
    halves = [Wire(served.port) for _ in range(10)]
    try:
        for half in halves:
            half.send(b"Q" + struct.pack(">i", 1_000) + b"select")
        with Wire(served.port) as other:
            assert other.rows("select count(*) from guarded") == [[b"2"]]
    finally:
        for half in halves:
            half.socket.close()
