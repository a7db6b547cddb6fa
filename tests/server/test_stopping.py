"""Statements that do not stop: their connection is closed, others continue, and the server stops within its grace
period."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from seachange.sql.text.tokens import STATEMENT_WORDS_MAX
from tests.support.nodes import Place
from tests.support.servers import ServerProcess, server_process
from tests.support.workers import wait_until

GRACE_S = 2
# DuckDB looks for an interrupt between two vectors of rows, not within a value: each of these matches is looked for up
# to the end of the text, which takes an hour for all of them.
UNSTOPPABLE = "select count(*) from regexp_matches(repeat('a', 1000000), 'a*b|a', 'g')"
PARAMETERS = 32_768


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(Place(tmp_path), "--grace", str(GRACE_S)) as opened:
        yield opened


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that waits for a second only until a statement has stopped."""
    (tmp_path / "seachange.toml").write_text("[seachange]\ncancel_grace = '1s'\n")
    with server_process(Place(tmp_path)) as opened:
        yield opened


def cpu_seconds(server: ServerProcess) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_done(connection: psycopg.Connection, statement: str) -> bool:
    """Whether it ended before its timeout."""
    with suppress(psycopg.errors.QueryCanceled):
        connection.execute(statement)
        return True
    return False


@pytest.mark.parametrize("asked", ["timeout", "cancel"])
def test_a_statement_that_does_not_stop_loses_its_connection(impatient: ServerProcess, asked: str):
    with impatient.connect() as other, impatient.connect() as stuck:
        timer = threading.Timer(2, stuck.cancel)
        if asked == "timeout":
            stuck.execute("set statement_timeout = '2s'")
        else:
            timer.start()
        with pytest.raises(psycopg.errors.AdminShutdown):
            stuck.execute(UNSTOPPABLE)
        timer.cancel()
        assert stuck.closed
        assert other.execute("select 1 + 1").fetchone() == (2,)
        with impatient.connect() as new:
            assert new.execute("select 2 + 2").fetchone() == (4,)


def test_the_server_ends_within_its_grace_whatever_runs(server: ServerProcess):
    with server.connect() as stuck:

        def run() -> None:
            with pytest.raises(psycopg.OperationalError):
                stuck.execute(UNSTOPPABLE)

        idle_s = cpu_seconds(server)
        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: cpu_seconds(server) > idle_s + 1, "the statement to run")
        server.process.send_signal(signal.SIGTERM)
        # Long before the statement would end.
        assert server.process.wait() == 0
        thread.join(60)
    assert any("did not stop" in line for line in server.said)


@pytest.mark.parametrize(
    "text",
    [
        f"select coalesce({','.join(map(str, range(50_000)))})",
        f"select coalesce({','.join(f'${n}' for n in range(1, PARAMETERS + 1))})",
    ],
    ids=["constants", "parameters"],
)
def test_a_long_text_is_parsed_and_planned_within_its_timeout(server: ServerProcess, text: str):
    with server.connect() as connection:
        connection.execute("set statement_timeout = '200ms'")
        for _ in range(2):
            described = connection.pgconn.prepare(b"", text.encode())
            if described.status == psycopg.pq.ExecStatus.COMMAND_OK:
                described = connection.pgconn.describe_prepared(b"")
            assert described.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57014"
        # On a busy machine any statement may take that long, even this one.
        wait_until(lambda: is_done(connection, "set statement_timeout = 0"), "the timeout to be turned off")
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.slow
def test_many_parameters_are_described(server: ServerProcess):
    """In time that grows with their number, whether or not their type is known."""
    with server.connect() as connection:
        for form in ("select abs(i) in ({}) from generate_series(1, 2) g(i)", "select coalesce({})"):
            text = form.format(",".join(f"${n}" for n in range(1, PARAMETERS + 1)))
            assert connection.pgconn.prepare(b"", text.encode()).status == psycopg.pq.ExecStatus.COMMAND_OK
            described = connection.pgconn.describe_prepared(b"")
            assert described.nparams == PARAMETERS, described.error_message


def test_a_text_that_is_too_long_is_refused(server: ServerProcess):
    with server.connect() as connection:
        with pytest.raises(psycopg.errors.StatementTooComplex, match="more than 500000"):
            connection.execute("select coalesce(" + "1," * (STATEMENT_WORDS_MAX // 2) + "1)")
        with pytest.raises(psycopg.errors.StatementTooComplex):
            connection.execute("select " + "array[" * 20 + "1" + "]" * 20)
        # A constant is one word.
        assert connection.execute(f"select length('{'a, ' * STATEMENT_WORDS_MAX}')").fetchone() == (
            3 * STATEMENT_WORDS_MAX,
        )


@pytest.mark.parametrize("length", [256, 150_000])
def test_levenshtein_has_the_limit_of_postgresql(server: ServerProcess, length: int):
    with server.connect() as connection:
        longest = connection.execute("select levenshtein(repeat('a', 255), repeat('b', 255))").fetchone()
        assert longest == (255,)
        for texts in (f"repeat('a', {length}), 'b'", f"'a', repeat('b', {length})"):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="maximum length of 255 characters"):
                connection.execute(f"select levenshtein({texts})")


def test_an_error_about_a_long_value_comes_at_once(server: ServerProcess):
    """The patterns that classify errors are not applied to the whole value."""
    with server.connect() as connection, pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute("select repeat('1,', 1000000)::int")


def test_marks_without_end_are_not_normalized(server: ServerProcess):
    """Marks behind one letter are sorted one by one: more of them than any language has are refused."""
    with server.connect() as connection:
        text = r"select length(normalize('a' || repeat(U&'\0301\0316', {})))"
        assert connection.execute(text.format(100)).fetchone() == (200,)
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            connection.execute(text.format(100_000))
