"""The demonstration: two processes keep writing while the table that they write changes shape.

Transfers between accounts keep the sum of all balances; every transfer leaves a line in a ledger, in the same
transaction. While they run, the main process adds, renames, widens and drops columns, has Spark build an index, and
folds the deltas. At the end the sum, the ledger and every index must be right, and no transaction may have failed
because of a schema change.
"""

from __future__ import annotations

import argparse
import random
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import seachange

BALANCE = 1_000
CHANGES = (
    "alter table accounts add column currency text not null default 'EUR'",
    "alter table accounts add column opened date default '2026-01-01'",
    "alter table accounts rename column note to remark",
    "alter table accounts alter column flags type bigint",
    "alter table accounts drop column remark",
    "alter table ledger add column channel text default 'transfer'",
)
RUNNING = "select stage, progress, rows_done, rows_total from seachange.jobs where status = 'running'"
INDEX = "create index accounts_by_owner on accounts (owner)"


@dataclass(frozen=True)
class Scale:
    accounts: int
    seconds_between_changes: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller table and shorter pauses: under a minute")
    parser.add_argument("--writer", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=7, help="seed of the writers' choices")
    parser.add_argument("--accounts", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.writer:
        return write(Path(options.writer), options.seed, options.accounts)
    scale = Scale(100_000, 1.0) if options.quick else Scale(1_000_000, 3.0)
    with tempfile.TemporaryDirectory(prefix="seachange-demo-") as folder:
        return run(Path(folder) / "data", scale, options.seed)


def run(data: Path, scale: Scale, seed: int) -> int:
    db = seachange.connect(data=str(data))
    db.autocommit = True
    load(db, scale.accounts)
    writers = [start_writer(data, seed + n, scale.accounts) for n in range(2)]
    say("two processes transfer money between random accounts")
    change_shape(db, data, scale)
    counts = [stop_writer(writer) for writer in writers]
    good = report(db, data, scale, counts)
    db.close()
    return 0 if good else 1


def load(db: seachange.Connection, accounts: int) -> None:
    cursor = db.cursor()
    cursor.execute(
        "create table accounts (id bigint primary key, owner text, balance bigint not null, flags integer, note text)"
    )
    cursor.execute("create table ledger (id text primary key, source bigint, target bigint, amount bigint not null)")
    started = time.perf_counter()
    rows = pa.table(
        {
            "id": pa.array(range(accounts), pa.int64()),
            "owner": pa.array([f"owner {n}" for n in range(accounts)]),
            "balance": pa.array([BALANCE] * accounts, pa.int64()),
            "flags": pa.array([0] * accounts, pa.int32()),
            "note": pa.nulls(accounts, pa.string()),
        }
    )
    db.load_arrow("accounts", rows)
    say(f"{accounts:,} rows loaded in {time.perf_counter() - started:.1f} s")


def change_shape(db: seachange.Connection, data: Path, scale: Scale) -> None:
    cursor = db.cursor()
    for statement in CHANGES:
        time.sleep(scale.seconds_between_changes)
        started = time.perf_counter()
        cursor.execute(statement)
        say(f"{(time.perf_counter() - started) * 1_000:7.1f} ms  {statement}")
    time.sleep(scale.seconds_between_changes)
    build_index(db, data)
    time.sleep(scale.seconds_between_changes)
    started = time.perf_counter()
    db.compact("accounts")
    say(f"{(time.perf_counter() - started) * 1_000:7.1f} ms  (compaction of accounts)")
    time.sleep(scale.seconds_between_changes)


def build_index(db: seachange.Connection, data: Path) -> None:
    """On Spark, which starts now; a second session watches the job."""
    cursor = db.cursor()
    cursor.execute("set seachange.local_rows = 0")
    started = time.perf_counter()
    try:
        with watching(data):
            cursor.execute(INDEX)
    except seachange.NotSupportedError as problem:
        # Without Java it is built in-process.
        say(str(problem))
        cursor.execute("reset seachange.local_rows")
        cursor.execute(INDEX)
    say(f"{(time.perf_counter() - started) * 1_000:7.1f} ms  {INDEX}")
    for (event,) in answer(cursor, "select event from seachange.events where event like '%Spark application%'"):
        say(f"            {event}")


@contextmanager
def watching(data: Path) -> Iterator[None]:
    """Prints what a job is at, when that has changed."""
    done = threading.Event()
    thread = threading.Thread(target=watch, args=(data, done))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def watch(data: Path, done: threading.Event) -> None:
    other = seachange.connect(data=str(data))
    other.autocommit = True
    cursor = other.cursor()
    shown = ""
    while not done.wait(0.5):
        for stage, progress, rows, total in answer(cursor, RUNNING):
            text = f"            {stage}: {rows:,} of {total:,} rows, {progress:.0%}"
            if text != shown:
                say(text)
            shown = text
    other.close()


# The writers: this very script, in processes of their own.


def start_writer(data: Path, seed: int, accounts: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--writer", str(data), "--seed", str(seed), "--accounts", str(accounts)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def stop_writer(writer: subprocess.Popen[str]) -> dict[str, int]:
    output, _ = writer.communicate("stop\n")
    return {name: int(value) for name, value in (line.split() for line in output.splitlines())}


def write(data: Path, seed: int, accounts: int) -> int:
    """Transfers until the parent closes standard input; a conflict by key is run again, anything else is a failure."""
    chance = random.Random(seed)
    db = seachange.connect(data=str(data))
    cursor = db.cursor()
    counts = {"transfers": 0, "conflicts": 0, "failures": 0}
    stop = StopSignal()
    while not stop.given():
        source, target = chance.sample(range(accounts), 2)
        line = f"{seed}-{counts['transfers']}"
        try:
            transfer(cursor, source, target, chance.randrange(1, 10), line)
            db.commit()
            counts["transfers"] += 1
        except seachange.Error as problem:
            db.rollback()
            conflict = problem.sqlstate == "40001"
            counts["conflicts" if conflict else "failures"] += 1
            if not conflict:
                print(problem, file=sys.stderr)
    db.close()
    print("\n".join(f"{name} {value}" for name, value in counts.items()))
    return 0


def transfer(cursor: seachange.Cursor, source: int, target: int, amount: int, line: str) -> None:
    cursor.execute("update accounts set balance = balance - %s where id = %s", (amount, source))
    cursor.execute("update accounts set balance = balance + %s where id = %s", (amount, target))
    cursor.execute(
        "insert into ledger (id, source, target, amount) values (%s, %s, %s, %s)", (line, source, target, amount)
    )


class StopSignal:
    """Standard input at its end, or with a line on it."""

    def given(self) -> bool:
        return bool(select.select([sys.stdin], [], [], 0)[0])


def report(db: seachange.Connection, data: Path, scale: Scale, counts: list[dict[str, int]]) -> bool:
    cursor = db.cursor()
    total = {name: sum(count.get(name, 0) for count in counts) for name in ("transfers", "conflicts", "failures")}
    ((rows, balance),) = answer(cursor, "select count(*), sum(balance) from accounts")
    ((lines,),) = answer(cursor, "select count(*) from ledger")
    ((wrong,),) = answer(cursor, "select count(*) from accounts where currency <> 'EUR' or opened <> date '2026-01-01'")
    command = [str(Path(sys.executable).with_name("seachange")), "check", "--data", str(data)]
    check = subprocess.run(command, check=False)
    say(f"{total['transfers']:,} transfers, {total['conflicts']} run again after a conflict by key")
    say(f"{total['failures']} transactions failed because of a schema change")
    say(f"sum of balances {balance:,} of {rows * BALANCE:,}; ledger {lines:,} lines of {total['transfers']:,}")
    say(f"{wrong} rows without the new columns' values; consistency check exit {check.returncode}")
    return (
        total["failures"] == 0
        and total["transfers"] > 0
        and rows == scale.accounts
        and balance == rows * BALANCE
        and lines == total["transfers"]
        and wrong == 0
        and check.returncode == 0
    )


def answer(cursor: seachange.Cursor, query: str) -> list[tuple[Any, ...]]:
    cursor.execute(query)
    return cursor.fetchall()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
