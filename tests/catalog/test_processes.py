"""Several real processes on one catalog, and processes that die in it."""

import signal
from contextlib import ExitStack

import pytest

from seachange.model.ids import CommitId, Seq
from seachange.model.log import Committed
from tests.catalog.builders import accept, register
from tests.catalog.conftest import Opener
from tests.support.forks import Fork

COMMITS_EACH = 300
FAIR_COMMITS = 1_000


def start_workers(url: str, work: str, number: int, processes: int) -> list[list[int]]:
    """Runs workers that start together; returns the numbers that each has printed."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(Fork("tests.catalog.worker", url, work, str(number), str(processes)))
            for _ in range(processes)
        ]
        outputs = [process.stdout.read().decode() for process in started]
        assert [process.wait() for process in started] == [0] * processes
    return [[int(line) for line in output.split()] for output in outputs]


def run_until_killed(url: str, work: str, fault: str) -> str:
    """The output of a process that dies at `fault`."""
    with Fork("tests.catalog.worker", url, work, "1", "1", fault=fault) as process:
        printed = process.stdout.read().decode()
        assert process.wait() == -signal.SIGKILL, process.stderr.read().decode()
    return printed


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
    start_workers(catalog_url, "open", 0, 4)
    accept(open_one(), register(open_one()))


@pytest.mark.parametrize("point", ["migration.started", "migration.applied", "migration.committed"])
def test_a_killed_migration_is_done_again_or_was_done(catalog_url: str, open_one: Opener, point: str):
    run_until_killed(catalog_url, "open", point)
    catalog = open_one()
    assert accept(catalog, register(catalog)).seq == 1


@pytest.mark.parametrize(
    ("point", "committed"),
    [("commit.locked", False), ("commit.written", False), ("commit.decided", True)],
)
def test_a_killed_commit_is_whole_or_absent(catalog_url: str, open_one: Opener, point: str, committed: bool):
    if point == "commit.written" and catalog_url.startswith("postgresql"):
        pytest.skip("lies inside the server, which decides by itself")
    printed = run_until_killed(catalog_url, "once", point)
    catalog = open_one()
    epoch = register(catalog)
    commit_id = bytes.fromhex(printed)
    entries = catalog.follow(epoch, Seq(0))
    assert [entry.commit_id for entry in entries] == [commit_id] * committed
    assert all(len(entry.batches) == 1 for entry in entries)
    assert isinstance(catalog.outcome(CommitId(commit_id)), Committed) is committed
