"""The type of a column changes while others write: a row without a value of the new type fails the change."""

import signal
from collections.abc import Callable
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, run_between
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import HOUR_MS, Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

# A killed process is known to be gone: nothing waits for the expiry of its node, and a busy process keeps its epoch.
EXPIRY_MS = HOUR_MS

ALTER = "alter table concurrently item alter column code type int using substr(code, 2)::int"
# The next step of the job when another session writes: the last one publishes the new column.
MOMENTS = ["drain", "backfill", "mutation"]


def before(stage: str, act: Callable[[], object]) -> Callable[[str], object]:
    return lambda next_stage: act() if next_stage == stage else None


def type_of(node: Node, column: str) -> str:
    node.epoch.catch_up()
    return str(node.epoch.schemas.newest.within().by_name["public", "item"].column_by_name[column].type)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_row_that_cannot_be_converted_fails_the_change(node: Node, moment: str):
    job_id = begin(node, ALTER)
    job = run_between(node, job_id, before(moment, lambda: ask(node, "insert into item values (1000, 'what', 1)")))
    assert job.failure is not None
    assert (job.status, job.failure.sqlstate) == (JobStatus.FAILED, "22P02")
    assert "(id)=(1000)" in job.failure.message
    assert type_of(node, "code") == "text"
    assert ask(node, "select code from item where id = 1000") == [("what",)]
    assert check(node) == []


@pytest.mark.parametrize("how", ["delete from item where id = 7", "update item set code = 'c7' where id = 7"])
def test_row_corrected_before_publication_does_not_fail_the_change(node: Node, how: str):
    def write() -> None:
        ask(node, "update item set code = 'what' where id = 7")
        ask(node, how)

    job = run_between(node, begin(node, ALTER), before("mutation", write))
    assert job.status is JobStatus.SUCCEEDED
    assert ask(node, "select id, code from item where id in (6, 7)") == [(6, 6), *([(7, 7)] if "update" in how else [])]
    assert check(node) == []


def test_rows_are_checked_when_conflict_keys_were_collected(node: Node):
    """The keys of commits are removed below the floor, which nothing holds while a job waits."""

    def forget() -> None:
        for id_ in (2000, 2001):
            ask(node, f"insert into item values ({id_}, 'c{id_}', 1)")
        node.beat()
        node.retention.default_us = 0
        node.maintenance.collect(node.epoch)

    job = run_between(node, begin(node, ALTER), before("mutation", forget))
    assert job.status is JobStatus.SUCCEEDED
    looked = [event.text for event in node.parts.catalog.events() if "all rows have values" in event.text]
    assert len(looked) == 1
    assert ask(node, "select code from item where id > 1999 order by 1") == [(2000,), (2001,)]
    assert check(node) == []


@pytest.mark.parametrize("moment", ["backfill", "mutation"])
def test_late_transaction_gets_the_conversion_error_of_its_row(shop: Place, node: Node, moment: str):
    with closing(open_node(shop.data, shop.catalog, name="there")) as there, closing(Session(there)) as late:

        def write() -> None:
            late.execute("begin")
            late.execute("insert into item values (1000, 'what', 1)")

        job = run_between(node, begin(node, ALTER), before(moment, write))
        assert job.status is JobStatus.SUCCEEDED
        with pytest.raises(errors.Error) as caught:
            late.execute("commit")
        assert caught.value.sqlstate == "22P02"
    assert type_of(node, "code") == "integer"
    assert ask(node, "select count(*) from item where id = 1000") == [(0,)]
    assert check(node) == []


def test_expression_indexes_follow_the_converted_column(node: Node):
    ask(node, "create index item_double on item ((length(code) * 2), category)")
    ask(node, "create unique index item_long on item (code) where length(code) > 3")

    def write() -> None:
        ask(node, "insert into item values (1000, 'c1000', 1), (1001, 'c7', 2)")
        ask(node, "delete from item where id = 300")

    statement = "alter table concurrently item alter column code type varchar(9) using code || 'x'"
    job = run_between(node, begin(node, statement), before("backfill", write))
    assert job.status is JobStatus.SUCCEEDED
    assert ask(node, "select id from item where length(code) * 2 = 12") == [(1000,)]
    assert "item_double" in str(ask(node, "explain select id from item where length(code) * 2 = 12"))
    with pytest.raises(errors.UniqueViolation):
        ask(node, "insert into item values (1002, 'c200x', 1)")
    assert check(node) == []


@pytest.mark.parametrize("fault", ["job.raised", "job.unit", "job.attached", "job.published"])
def test_another_node_resumes_a_conversion(shop: Place, fault: str):
    """The record says what was converted, and as of when."""
    with SqlProcess(shop, EXPIRY_MS, fault) as process:
        process.send(ALTER)
        assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
    with closing(open_node(shop.data, shop.catalog, name="survivor")) as survivor:
        survivor.jobs.paused = True
        # The publication is not committed yet, or it is done.
        bad = fault != "job.published"
        if bad:
            ask(survivor, "insert into item values (1000, 'what', 1)")
        survivor.jobs.paused = False
        wait_until(lambda: not survivor.parts.catalog.jobs(unfinished=True), "the survivor to finish the job")
        expected = ("text", [("c7",)]) if bad else ("integer", [(7,)])
        assert (type_of(survivor, "code"), ask(survivor, "select code from item where id = 7")) == expected
        assert check(survivor) == []
