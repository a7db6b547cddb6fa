"""The process that runs a change is killed, while transactions of others are in flight; a survivor goes on."""

import signal

import pytest

from seachange.model.jobs import JobId
from tests.cluster.sqlprocess import SqlProcess
from tests.schemachange.bench import Bench
from tests.schemachange.case import Case
from tests.schemachange.cases import CASES
from tests.schemachange.judging import judge
from tests.schemachange.world import Worlds
from tests.support.nodes import HOUR_MS, Place
from tests.support.workers import wait_until

# A killed process is known to be gone: nothing waits for the expiry of its node, and a busy process keeps its epoch.
EXPIRY_MS = HOUR_MS
SAMPLE = [
    ("sqlite", "create unique index", "job.built"),
    ("sqlite", "alter primary key", "job.attached"),
    ("sqlite", "add foreign key", "job.published:2"),
    ("sqlite", "add unique over duplicates", "job.reverting"),
    ("sqlite", "drop primary key", "job.published:2"),
    ("postgresql", "several at once", "commit.decided:3"),
    ("postgresql", "set not null", "job.validated"),
]


class Killed(Bench):
    """The statement is run by a process that dies at a fault point."""

    def __init__(self, place: Place, case: Case, fault: str) -> None:
        super().__init__(place, case)
        self._fault = fault

    def _execute(self) -> JobId | None:
        with SqlProcess(self.place, EXPIRY_MS, self._fault) as process:
            # No drain, and no rejected commits: transactions in flight are rebased.
            process.run("set seachange.drain_timeout = 0")
            process.send(self.case.statement)
            assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
        found = wait_until(self.runner.jobs.find_orphans, "the job of the one that was killed")
        return JobId(found[0].id)


@pytest.mark.parametrize(("catalog_kind", "name", "fault"), SAMPLE)
def test_a_surviving_node_keeps_working(worlds: Worlds, name: str, fault: str):
    case = next(case for case in CASES if case.name == name)
    with Killed(worlds.make(case), case, fault) as bench:
        problems = judge(bench, bench.run())
    assert not problems, "\n".join(problems)
