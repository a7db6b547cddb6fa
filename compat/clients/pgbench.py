"""pgbench: its tables and standard scripts, unchanged, in each query mode."""

from __future__ import annotations

import os
import re
import subprocess

import psycopg

from compat.features import Features, expect

feature = Features()
PGBENCH = os.environ.get("PGBENCH", "pgbench")
SECONDS_MAX = 120
SECONDS = "2"


def pgbench(url: str, *arguments: str) -> str:
    done = subprocess.run([PGBENCH, *arguments, url], capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise AssertionError(done.stderr.strip())
    return done.stdout


def run_script(url: str, *arguments: str) -> None:
    """Runs two clients for some seconds; neither may fail."""
    told = pgbench(url, "-n", "-c", "2", "-j", "2", "-T", SECONDS, *arguments)
    done = re.search(r"number of transactions actually processed: (\d+)", told)
    failed = re.search(r"number of failed transactions: (\d+)", told)
    if done is None or not int(done[1]):
        raise AssertionError(told)
    expect(failed and failed[1], "0")
    print_rate(told)


def print_rate(told: str) -> None:
    rate = re.search(r"tps = ([\d.]+)", told)
    os.write(2, f"{rate and rate[0]}\n".encode())


def check_sums(url: str) -> None:
    """Checks the sums that every transaction of pgbench keeps equal."""
    with psycopg.connect(url) as connection:
        (sums,) = connection.execute(
            "select (select sum(abalance) from pgbench_accounts), (select sum(delta) from pgbench_history)"
        ).fetchall()
    expect(sums[0], sums[1])


@feature("-i")
def initialise(url: str) -> None:
    pgbench(url, "-i", "-s", "1")
    with psycopg.connect(url) as connection:
        counts = connection.execute(
            "select (select count(*) from pgbench_accounts), (select count(*) from pgbench_tellers),"
            " (select count(*) from pgbench_branches)"
        ).fetchall()
    expect(counts, [(100_000, 10, 1)])


@feature("-i with foreign keys")
def initialise_with_foreign_keys(url: str) -> None:
    pgbench(url, "-i", "-s", "1", "--foreign-keys")


@feature("tpcb-like")
def tpcb(url: str) -> None:
    run_script(url)
    check_sums(url)


@feature("tpcb-like, prepared")
def tpcb_prepared(url: str) -> None:
    run_script(url, "-M", "prepared")
    check_sums(url)


@feature("simple-update")
def simple_update(url: str) -> None:
    run_script(url, "-N", "-M", "extended")
    check_sums(url)


@feature("select-only")
def select_only(url: str) -> None:
    for mode in ("simple", "extended", "prepared"):
        run_script(url, "-S", "-M", mode)


if __name__ == "__main__":
    feature.run()
