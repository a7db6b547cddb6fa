"""Health and metrics: the contents of the pages, and that requests cannot disturb the server."""

import http.client
import json
import re
import socket
import threading

import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving

SAMPLE = re.compile(r"([a-z_]+)(\{[^}]*\})? (\S+)")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


def ask(served: Served, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, served.http_port, timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metrics(served: Served) -> dict[str, float]:
    status, text = ask(served, "/metrics")
    assert status == 200
    samples = [SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(samples), text
    return {sample[1] + (sample[2] or ""): float(sample[3]) for sample in samples if sample}


def test_what_was_done_is_counted(served):
    before = metrics(served)
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table t (id int primary key, n int)")
        for i in range(5):
            connection.execute("insert into t values (%s, 0)", [i])
        connection.execute("create index on t (n)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("insert into t values (1, 0)")
        inside = metrics(served)
    assert inside["seachange_connections"] == 1

    def grown(name: str) -> float:
        return inside[name] - before.get(name, 0)

    assert grown('seachange_statements_total{command="INSERT"}') == 6
    assert grown('seachange_statement_seconds_count{command="INSERT"}') == 6
    assert inside['seachange_statement_seconds_bucket{command="INSERT",le="+Inf"}'] == 6
    assert inside['seachange_statement_seconds_sum{command="INSERT"}'] > 0
    assert grown('seachange_aborts_total{cause="constraint",sqlstate="23505"}') == 1
    # The table, five rows and at least one step of the index.
    assert grown("seachange_commits_total") >= 7
    assert grown("seachange_drains_total") >= 1
    assert grown("seachange_version_wait_seconds_total") > 0
    assert grown("seachange_pipeline_rows_total") >= 5
    assert inside['seachange_jobs{status="succeeded"}'] >= 1
    assert inside["seachange_segments"] >= 1
    assert inside["seachange_nodes"] == 1


def test_a_conflict_is_counted_as_such(served):
    with psycopg.connect(served.url, autocommit=True) as one, psycopg.connect(served.url) as two:
        one.execute("create table c (id int primary key, n int)")
        one.execute("insert into c values (1, 0)")
        before = metrics(served)
        two.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        two.execute("select * from c")
        one.execute("update c set n = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            two.execute("update c set n = 2")
    after = metrics(served)
    name = 'seachange_aborts_total{cause="conflict",sqlstate="40001"}'
    assert after[name] == before.get(name, 0) + 1


def test_health_and_readiness(served):
    assert ask(served, "/healthz") == (200, "ok\n")
    status, text = ask(served, "/readyz?verbose")
    assert status == 200
    assert json.loads(text)["node"] == served.node.name
    assert ask(served, "/healthz", "HEAD") == (200, "")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nosuch", 404), ("POST", "/metrics", 405)])
def test_other_pages_and_methods_are_refused(served, method, path, status):
    assert ask(served, path, method)[0] == status


@pytest.mark.parametrize(
    ("sent", "status"), [(b"x" * 20_000, b"431"), (b"hello\r\n\r\n", b"400"), (b"GET / HTTP/2\r\n\r\n", b"400")]
)
def test_what_is_no_request_is_refused(served, sent, status):
    with socket.create_connection((HOST, served.http_port), PATIENCE_S) as raw:
        raw.sendall(sent)
        assert raw.recv(1000).split()[1] == status


def test_incomplete_request_blocks_no_other(served):
    halves = [socket.create_connection((HOST, served.http_port), PATIENCE_S) for _ in range(20)]
    try:
        for half in halves:
            half.sendall(b"GET /he")
        assert ask(served, "/healthz")[0] == 200
    finally:
        for half in halves:
            half.close()


def test_a_server_that_stops_is_not_ready(tmp_path):
    with serving(tmp_path, grace=10.0) as served, psycopg.connect(served.url) as connection:
        connection.execute("select 1")
        stopping = threading.Thread(target=served.stop)
        stopping.start()
        while not served.server.is_stopping:
            pass
        assert ask(served, "/healthz")[0] == 200
        assert ask(served, "/readyz")[0] == 503
        connection.commit()
        stopping.join()
