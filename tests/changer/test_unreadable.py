"""A job whose record this program cannot read is left alone: the others run, and it is logged once."""

import sqlite3

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.model.jobs import JobStatus
from tests.changer.changing import UNIQUE, ask, begin, judge
from tests.support.nodes import Place

BODIES = ["no JSON", "3", '{"=": "job.FromTheFuture"}', '{"=": "job.Job", "unheard": 1}']


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("body", BODIES)
def test_an_unreadable_record_is_left_alone(node: Node, shop: Place, body: str):
    lost = begin(node, "create index concurrently other_code on other (code)")
    with sqlite3.connect(shop.data / "catalog.sqlite") as db:
        db.execute("update job set body = ? where id = ?", (body, lost))
    db.close()
    job_id = begin(node, UNIQUE)
    for _ in range(3):
        for thread in node.jobs.take_up():
            thread.join()
    judge(node, job_id, JobStatus.SUCCEEDED)
    logged = ask(node, f"select event from seachange.events where job_id = {lost} and event like 'will be retried%'")
    ((event,),) = logged
    assert "XX001" in event
    shown = ask(node, "select id, status, sqlstate from seachange.jobs order by id")
    assert shown == [(lost, "running", "XX001"), (job_id, "succeeded", None)]
    assert {row[0] for row in ask(node, "select job_id from seachange.job_stages")} == {job_id}
    with pytest.raises(errors.UnreadableJob, match=f"job {lost}"):
        ask(node, f"cancel job {lost}")
    with pytest.raises(errors.UnreadableJob):
        ask(node, "alter table other add column more int")
