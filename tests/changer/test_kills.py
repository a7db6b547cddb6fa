"""The process that runs a job is killed at every point of it; another node resumes from the record."""

import signal

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.model.jobs import JobStatus
from seachange.runtime.faults import POINTS
from tests.changer.changing import BROKEN, UNIQUE, judge
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import HOUR_MS, Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

# A killed process is known to be gone: nothing waits for the expiry of its node, and a busy process keeps its epoch.
EXPIRY_MS = HOUR_MS
JOB_POINTS = [point for point in POINTS if point.startswith("job.") and point != "job.taken"]
# Points that a change passes more than once.
LATER = ["job.drained:2", "job.raised:2", "job.published:2"]
STATEMENTS = {"job.reverting": BROKEN}


@pytest.mark.parametrize("fault", [*JOB_POINTS, *LATER])
def test_another_node_resumes_the_work(shop: Place, fault: str):
    statement = STATEMENTS.get(fault, UNIQUE)
    with SqlProcess(shop, EXPIRY_MS, fault) as process:
        process.send(statement)
        assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
    node = open_node(shop.data, shop.catalog, name="survivor")
    try:
        wait_until(lambda: _is_over(node), "the survivor to finish the job")
        status = JobStatus.FAILED if statement == BROKEN else JobStatus.SUCCEEDED
        judge(node, 1, status, "item_category" if statement == BROKEN else "item_code")
    finally:
        node.close()


def _is_over(node: Node) -> bool:
    return not node.parts.catalog.jobs(unfinished=True)


def test_second_runner_is_killed_too(shop: Place):
    with SqlProcess(shop, EXPIRY_MS, "job.raised") as process:
        process.send(UNIQUE)
        assert process.wait() == -signal.SIGKILL
    with SqlProcess(shop, EXPIRY_MS, "job.taken") as process:
        process.send("select 1")
        assert process.wait() == -signal.SIGKILL
    node = open_node(shop.data, shop.catalog, name="survivor")
    try:
        wait_until(lambda: _is_over(node), "the survivor to finish the job")
        judge(node, 1, JobStatus.SUCCEEDED)
    finally:
        node.close()
