"""Several real processes on one catalog, and processes that die in it."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from seachange.model.ids import CommitId, Seq
from seachange.model.log import Committed
from tests.catalog.builders import accept, register
from tests.catalog.conftest import Opener
from tests.support.forks import Fork

ROOT = Path(__file__).parents[2]
COMMITS_EACH = 1_000
FAIR_COMMITS = 1_000

OPEN = """
import sys
from contextlib import ExitStack
from pathlib import Path
from seachange.catalog.open import open_catalog
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
catalog = open_catalog(sys.argv[1], Path(), SYSTEM_CLOCK, SYSTEM_ENTROPY)
"""
COMMIT = (
    OPEN
    + """
from tests.catalog.builders import *
what = request(0, writes=(1,), batches=(batch(),))
print(what.commit_id.hex(), flush=True)
print(submit(catalog, register(catalog), what).seq)
"""
)


def start_workers(url: str, work: str, number: int, processes: int) -> list[list[int]]:
    """Runs workers that start together; gives the numbers each has printed."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(Fork("tests.catalog.worker", url, work, str(number), str(processes)))
            for _ in range(processes)
        ]
        outputs = [process.stdout.read().decode() for process in started]
        assert [process.wait() for process in started] == [0] * processes
    return [[int(line) for line in output.split()] for output in outputs]


def run(program: str, url: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"SEACHANGE_FAULT": fault} if fault else {})}
    command = [sys.executable, "-c", program, url]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_two_processes_lose_nothing(catalog_url: str, open_one: Opener):
    printed = start_workers(catalog_url, "number", COMMITS_EACH, 2)
    assert sorted(seq for seqs in printed for seq in seqs) == list(range(1, 2 * COMMITS_EACH + 1))
    assert all(seqs == sorted(seqs) for seqs in printed)
    catalog = open_one()
    entries = catalog.follow(register(catalog), Seq(0))
    assert [entry.seq for entry in entries] == list(range(1, 2 * COMMITS_EACH + 1))
    assert all(len(entry.batches) == 1 for entry in entries)


def test_every_process_gets_its_turn(catalog_url: str):
    counts = [count for (count,) in start_workers(catalog_url, "until", FAIR_COMMITS, 4)]
    assert min(counts) * 4 >= FAIR_COMMITS * 0.25, counts


def test_processes_may_create_a_catalog_at_once(catalog_url: str, open_one: Opener):
    command = [sys.executable, "-c", OPEN, catalog_url]
    started = [subprocess.Popen(command, cwd=ROOT) for _ in range(4)]
    assert [process.wait() for process in started] == [0] * 4
    accept(open_one(), register(open_one()))


@pytest.mark.parametrize("point", ["migration.started", "migration.applied", "migration.committed"])
def test_a_killed_migration_is_done_again_or_was_done(catalog_url: str, open_one: Opener, point: str):
    assert run(OPEN, catalog_url, point).returncode == -signal.SIGKILL
    catalog = open_one()
    assert accept(catalog, register(catalog)).seq == 1


@pytest.mark.parametrize(
    ("point", "committed"),
    [("commit.locked", False), ("commit.written", False), ("commit.decided", True)],
)
def test_a_killed_commit_is_whole_or_absent(catalog_url: str, open_one: Opener, point: str, committed: bool):
    if point == "commit.written" and catalog_url.startswith("postgresql"):
        pytest.skip("lies inside the server, which decides by itself")
    killed = run(COMMIT, catalog_url, point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    catalog = open_one()
    epoch = register(catalog)
    commit_id = bytes.fromhex(killed.stdout)
    entries = catalog.follow(epoch, Seq(0))
    assert [entry.commit_id for entry in entries] == [commit_id] * committed
    assert all(len(entry.batches) == 1 for entry in entries)
    assert isinstance(catalog.outcome(CommitId(commit_id)), Committed) is committed
