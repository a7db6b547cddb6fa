"""A night on call: find the session that blocks a schema change, end it, watch the change finish, undo it, and restore
yesterday's backup when the table is gone.

    python examples/operations/night_on_call.py

Starts a server of its own on a temporary folder, and prints what a person would do with psql and the command line.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

ROWS = 50_000
COMMAND = [sys.executable, "-m", "seachange.cli.main"]
# Who waits, for whom, and what that one does.
BLOCKERS = """
    SELECT waiting.pid AS waiting, holder.pid AS holder, holder.role, holder.application, holder.state,
           holder.statement, now() - holder.state_changed > interval '0 s' AS has_been_idle
    FROM seachange.sessions waiting JOIN seachange.sessions holder
      ON holder.pid::text = ANY (string_to_array(waiting.blocked_by, ', '))
"""


def say(text: object) -> None:
    print(text, flush=True)


def seachange(*arguments: object) -> str:
    """Runs a command; returns what it prints."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"seachange {arguments[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout.strip()


@contextmanager
def server(data: Path, log: Path) -> Iterator[str]:
    """The URL of a server."""
    options = ["--data", data, "--trust", "--listen", "127.0.0.1:0", "--http", "off", "--log", log]
    with subprocess.Popen([*COMMAND, "serve", *map(str, options)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            port = re.search(r"127\.0\.0\.1:(\d+)", ready)
            if port is None:
                raise SystemExit(f"the server does not start: {ready}")
            yield f"postgresql://seachange@127.0.0.1:{port[1]}/seachange"
        finally:
            process.terminate()


def one(connection: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query, values or None).fetchone()
    assert row is not None, query
    return row


def wait_for(connection: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
    """The first row, once there is one."""
    while True:
        row = connection.execute(query, values or None).fetchone()
        if row is not None:
            return row
        threading.Event().wait(0.1)


def set_up(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY, customer text, total numeric(12, 2))")
        connection.execute(
            "INSERT INTO orders SELECT i, 'customer ' || i %% 100, i FROM generate_series(1, %s) i", (ROWS,)
        )


def back_up(when: str, data: Path, backups: Path) -> int:
    """The sequence number as of which the backup is."""
    printed = seachange("backup", "--data", data, "--to", backups, "--incremental")
    say(f"{when}  " + printed.replace("\n", "; "))
    found = re.search(r"sequence (\d+)", printed)
    assert found is not None, printed
    return int(found[1])


def end_the_session_that_blocks(url: str, on_call: psycopg.Connection) -> None:
    say("\n01:10  the deployment hangs: ALTER TABLE orders does not return")
    forgotten = psycopg.connect(url, application_name="a forgotten console")
    forgotten.execute("ALTER TABLE orders ADD COLUMN scratch int")
    notices: list[str | None] = []

    def deploy() -> None:
        with psycopg.connect(url, autocommit=True, application_name="deployment") as connection:
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
            connection.execute("ALTER TABLE orders ALTER COLUMN customer SET NOT NULL")

    deployment = threading.Thread(target=deploy)
    deployment.start()
    waiting, holder, role, application, state, statement, _ = wait_for(on_call, BLOCKERS)
    say(f"       process {waiting} waits for process {holder}: {application} of {role}, {state}")
    say(f"       its last statement: {statement}")
    assert on_call.execute("SELECT pg_blocking_pids(%s)", (waiting,)).fetchone() == ([holder],)
    while not notices:
        threading.Event().wait(0.1)
    say(f"       the deployment gets a notice while it waits: {notices[0]}")
    say(f"01:12  SELECT pg_terminate_backend({holder})")
    on_call.execute("SELECT pg_terminate_backend(%s)", (holder,))
    deployment.join()
    (columns,) = one(on_call, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'orders'")
    assert columns == 3, columns
    forgotten.close()
    say("01:12  the change is finished, and the one of the forgotten session is rolled back")


def watch_and_undo(on_call: psycopg.Connection) -> None:
    say("\n02:30  the next deployment adds a constraint, and was a mistake")
    statement = "ALTER TABLE CONCURRENTLY orders ADD CONSTRAINT one_of_each UNIQUE (total)"
    (job,) = one(on_call, statement)
    seen: list[str] = []
    while True:
        status, stage, progress, waiting = one(
            on_call, "SELECT status, stage, progress, waiting_for FROM seachange.jobs WHERE id = %s", job
        )
        line = f"{status} {stage or ''} {progress or 0:.0%}" + (f", waits for {waiting}" if waiting else "")
        if line not in seen:
            seen.append(line)
            say(f"       job {job}: {line}")
        if status not in ("pending", "running"):
            break
        threading.Event().wait(0.02)
    assert status == "succeeded", status
    order = "INSERT INTO orders VALUES (1000000, 'ann', 7)"
    try:
        on_call.execute(order)
    except psycopg.errors.UniqueViolation as problem:
        say(f"       orders fail: {str(problem).splitlines()[0]}")
    else:
        raise SystemExit("the constraint is not there")
    (change,) = one(on_call, "SELECT max(id) FROM seachange.changes WHERE statement LIKE '%one_of_each%'")
    say(f"02:41  REVERT CHANGE {change}")
    on_call.execute(f"REVERT CHANGE {change}".encode())
    on_call.execute(order)
    say("       orders work again")


def restore_yesterday(folder: Path, backups: Path, yesterday: int) -> None:
    say("\n04:00  the disk with the data is gone: the backup of yesterday is restored")
    restored = folder / "restored"
    say("       " + seachange("restore", "--from", backups, "--as-of", yesterday, "--data", restored))
    say("       " + seachange("check", "--data", restored).splitlines()[-1])
    with server(restored, folder / "restored.log") as url, psycopg.connect(url) as connection:
        count, total = one(connection, "SELECT count(*), sum(total) FROM orders")
    assert (count, int(total)) == (ROWS, ROWS * (ROWS + 1) // 2)
    say(f"04:06  {count} orders are served again")


def run(folder: Path) -> None:
    data, backups, log = folder / "data", folder / "backups", folder / "node.log"
    with server(data, log) as url:
        set_up(url)
        yesterday = back_up("yesterday", data, backups)
        with psycopg.connect(url, autocommit=True) as on_call:
            end_the_session_that_blocks(url, on_call)
            watch_and_undo(on_call)
            on_call.execute("DELETE FROM orders WHERE id > 10")
            back_up("03:00    ", data, backups)
    told = log.read_text()
    assert "schema change published" in told
    assert "sqlstate=57P01" in told
    restore_yesterday(folder, backups, yesterday)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="seachange-night-") as name:
        run(Path(name))
    say("\nthe night is over")
