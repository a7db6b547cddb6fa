"""Login: passwords, encryption, limits, and the shutdown of the server."""

import os
import socket
import ssl
import struct
import subprocess
import threading

import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, serving

_CERTIFY = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("guarded"), {"seachange": "right", "ünï": "pässwörd"}) as served:
        yield served


def connect(served, user: str, password: str) -> psycopg.Connection:
    return psycopg.connect(host=HOST, port=served.port, user=user, password=password, dbname="seachange")


def test_the_right_password_opens(guarded):
    with connect(guarded, "seachange", "right") as connection:
        assert connection.execute("select current_user").fetchone() == ("seachange",)


@pytest.mark.parametrize(("user", "password"), [("seachange", "wrong"), ("missing", "right"), ("seachange", "")])
def test_others_are_refused_alike(guarded, user, password):
    with pytest.raises(psycopg.OperationalError, match=f'password authentication failed for user "{user}"|no password'):
        connect(guarded, user, password)


def test_data_after_ssl_request_is_rejected(tmp_path):
    folder = tmp_path
    made = subprocess.run(
        [*_CERTIFY, "-keyout", folder / "key", "-out", folder / "certificate"],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("there is no openssl to make a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    with serving(tmp_path / "data", tls=context) as served:
        with psycopg.connect(served.url, sslmode="require") as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("select 1").fetchone() == (1,)
        with socket.create_connection((HOST, served.port), PATIENCE_S) as plain:
            plain.sendall(struct.pack(">ihh", 8, 1234, 5679) + startup())
            assert plain.recv(1000)[:1] in (b"E", b"")


def startup() -> bytes:
    body = struct.pack(">hh", 3, 0) + b"user\0seachange\0\0"
    return struct.pack(">i", len(body) + 4) + body


def test_too_many_connections_are_refused(tmp_path):
    with serving(tmp_path, connections=1) as served, psycopg.connect(served.url) as first:
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            psycopg.connect(served.url)
        assert first.execute("select 1").fetchone() == (1,)


def test_shutdown_lets_transactions_finish_or_cancels_them(tmp_path):
    with serving(tmp_path, grace=2.0) as served:
        idle = psycopg.connect(served.url, autocommit=True)
        idle.execute("create table t (id int primary key)")
        late, quick = psycopg.connect(served.url), psycopg.connect(served.url)
        late.execute("insert into t values (1)")
        quick.execute("insert into t values (2)")
        stopping = threading.Thread(target=served.stop)
        stopping.start()
        while not served.server.is_stopping:
            os.sched_yield()
        quick.commit()
        stopping.join()
        for connection in (idle, late):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("select 1")
            connection.close()
        quick.close()
    with serving(tmp_path) as again, psycopg.connect(again.url) as connection:
        assert connection.execute("select id from t").fetchall() == [(2,)]
