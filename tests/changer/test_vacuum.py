"""VACUUM: a job that rewrites indexes in units while others use the table, without a visible difference."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from seachange import errors
from seachange.changer.job import Job, read_job
from seachange.changer.ports import Stopped
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.session.vacuum import _create
from seachange.model.jobs import JobId, JobStatus
from seachange.pipeline.compaction import deltas
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import inspect
from tests.changer.changing import ask
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

FULL = "vacuum full item"
ROWS = "select id, code, category, added from item order by id"
UNITS = "set seachange.pipeline_unit_rows = 200"


@pytest.fixture
def messy(node: Node) -> Node:
    """Segments of two layouts, partly superseded, tombstones, and inline rows."""
    node.maintenance.paused = True
    clutter(node)
    return node


def clutter(node: Node) -> None:
    session = Session(node)
    node.parts.inline_rows_max = 50
    session.execute("create index by_code on item (code)")
    session.execute("insert into item select i, 'd' || i, 1 from generate_series(1000, 1299) g(i)")
    session.execute("update item set code = 'new' || id where id % 3 = 0")
    session.execute("alter table item add column added int default 5")
    session.execute("insert into item select i, 'e' || i, 2, i from generate_series(2000, 2299) g(i)")
    session.execute("delete from item where id between 100 and 150")
    session.execute("update item set added = 6 where id in (7, 1007, 2007)")
    session.close()


def layouts(node: Node) -> list[tuple[Any, ...]]:
    return ask(node, "select index_name, layout_id, is_base from seachange.segments where table_name = 'item'")


def begin(node: Node, full: bool = True, *settings: tuple[str, str]) -> JobId:
    """The job of a VACUUM that has no runner yet."""
    job_id = node.parts.catalog.new_job_id()
    node.epoch.catch_up()
    _create(node, job_id, node.epoch.schemas.newest.within().by_name["public", "item"], full, settings)
    return job_id


def run(node: Node, job_id: JobId, told: Any = lambda job: None) -> Job:
    with node.jobs.holding(job_id):
        return node.jobs.run(job_id, Conditions(lambda seconds: None, SessionInterrupts(), told, 100))


def judge(node: Node, before: list[tuple[Any, ...]]) -> None:
    assert ask(node, ROWS) == before
    assert not inspect(node).anomalies


def test_vacuum_full_rewrites_in_the_newest_layout(messy: Node) -> None:
    before = ask(messy, ROWS)
    assert len({layout for _, layout, _ in layouts(messy)}) > 1
    session = Session(messy)
    session.execute(UNITS)
    assert session.execute(FULL).tag == "VACUUM"
    session.close()
    newest = messy.epoch.schemas.newest.within().by_name["public", "item"].layout.id
    assert {found[1:] for found in layouts(messy)} == {(newest, True)}
    judge(messy, before)
    ((statement, status, done, total, progress),) = ask(
        messy, "select statement, status, rows_done, rows_total, progress from seachange.jobs where id = 2"
    )
    assert (statement, status, progress) == ('VACUUM FULL "public"."item"', "succeeded", 1.0)
    assert done == total == 2 * len(before)
    stages = ask(messy, "select stage, rows from seachange.job_stages where job_id = 2 order by number")
    assert stages == [("rewrite", len(before)), ("rewrite", len(before)), ("collection", 0)]
    events = [e for (e,) in ask(messy, "select event from seachange.events where job_id = 2")]
    assert any(e.startswith(f"rewrote {len(before)} rows of index by_code") for e in events)


@pytest.mark.parametrize("fault", ["job.unit:2", "compaction.written", "compaction.swapped"])
def test_another_node_resumes_the_work(messy: Node, shop: Place, fault: str) -> None:
    before = ask(messy, ROWS)
    messy.close()
    with SqlProcess(shop, 500, fault) as process:
        assert process.run(UNITS) == []
        process.send(FULL)
        assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
    survivor = open_node(shop.data, shop.catalog, name="survivor")
    try:
        wait_until(lambda: not survivor.parts.catalog.jobs(unfinished=True), "the survivor to finish the job")
        assert ask(survivor, "select status from seachange.jobs where id = 2") == [("succeeded",)]
        judge(survivor, before)
        survivor.collect_garbage(0)
        named = {f"{id_:016x}.parquet" for (id_,) in ask(survivor, "select segment_id from seachange.segments")}
        assert set(survivor.parts.files.names()) == named
    finally:
        survivor.close()


def test_units_that_are_done_are_not_done_again(messy: Node) -> None:
    before = ask(messy, ROWS)
    job_id = begin(messy, True, ("seachange.pipeline_unit_rows", "200"))
    finished: list[str] = []

    def stop(job: Job) -> None:
        finished.extend(unit.unit for _, unit in job.units if unit.unit not in finished)
        if len(finished) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(messy, job_id, stop)
    record = messy.parts.catalog.job(job_id)
    assert record is not None
    left = read_job(record)
    assert [unit.unit for _, unit in left.units] == finished
    taken: list[str] = []
    job = run(messy, job_id, lambda job: taken.extend(unit.unit for _, unit in job.units[2:]))
    assert job.status is JobStatus.SUCCEEDED
    assert not set(finished) & set(taken)
    # The first index was read once, including the units of the first attempt.
    assert job.stages[0].rows == len(before)
    judge(messy, before)


def test_overtaken_vacuum_starts_again(messy: Node) -> None:
    """Another node whose claim was lost, as of a dead epoch, may still swap."""
    before = ask(messy, ROWS)
    table = messy.epoch.schemas.newest.within().by_name["public", "item"]
    job_id = begin(messy)

    def overtake() -> None:
        messy.parts.compaction_locks._held.clear()
        assert messy.compact(table)

    FAULTS.arm("compaction.written", overtake)
    assert run(messy, job_id).status is JobStatus.SUCCEEDED
    events = [e for (e,) in ask(messy, f"select event from seachange.events where job_id = {job_id}")]
    assert "starts again: the index has been compacted" in events
    judge(messy, before)


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_vacuum_overtaken_while_it_had_no_runner_starts_again(messy: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A concurrent automatic compaction does not replace the requested one."""
    before = ask(messy, ROWS)
    table = messy.epoch.schemas.newest.within().by_name["public", "item"]
    job_id = begin(messy, True, ("seachange.pipeline_unit_rows", "200"))

    def stop(job: Job) -> None:
        if job.units:
            raise Stopped

    with pytest.raises(Stopped):
        run(messy, job_id, stop)
    ask(messy, "insert into item values (5000, 'later', 1, 1)")
    # It leaves what is large, as all of this would be.
    with monkeypatch.context() as little:
        little.setattr(deltas, "MERGE_FACTOR", 0)
        little.setattr(deltas, "SUPERSEDED_SHARE_MAX", 1)
        assert messy.compact(table, full=False)
    assert len({layout for _, layout, _ in layouts(messy)}) > 1
    assert run(messy, job_id).status is JobStatus.SUCCEEDED
    assert {found[1:] for found in layouts(messy)} == {(table.layout.id, True)}
    judge(messy, sorted([*before, (5000, "later", 1, 1)]))


def test_vacuum_waits_for_a_concurrent_compaction(messy: Node) -> None:
    table = messy.epoch.schemas.newest.within().by_name["public", "item"]
    job_id = begin(messy)
    waits: list[str] = []
    with messy.parts.compaction_locks.holding(messy.epoch.epoch, table.primary.id):
        # Maintenance skips the index meanwhile, and the job waits.
        assert messy.compact(table) == 1

        def told(job: Job) -> None:
            waits.append(job.waiting)
            if len(waits) == 3:
                raise Stopped

        with pytest.raises(Stopped):
            run(messy, job_id, told)
    assert set(waits) == {"another compaction of the same index"}
    assert run(messy, job_id).status is JobStatus.SUCCEEDED


CHANGES = [
    ("drop table item", None),
    ("drop index by_code", ROWS),
    ("alter table item drop column category", "select id, code, added from item order by id"),
    ("alter table item alter column added type text using added::text || 'x'", ROWS),
    ("alter table item alter primary key using columns (code, id)", ROWS),
]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize(("change", "question"), CHANGES, ids=lambda value: str(value)[:30])
def test_the_table_may_be_changed_meanwhile(messy: Node, change: str, question: str | None) -> None:
    """Neither waits for the other."""
    job_id = begin(messy, True, ("seachange.pipeline_unit_rows", "200"))
    done: list[list[tuple[Any, ...]]] = []

    def meddle(job: Job) -> None:
        if job.units and not done:
            done.append([])
            ask(messy, change)
            ask(messy, "insert into other values (1000, 'meanwhile')")
            if question is not None:
                done[0] = ask(messy, question)

    assert run(messy, job_id, meddle).status is JobStatus.SUCCEEDED
    assert done
    if question is not None:
        assert ask(messy, question) == done[0]
    assert not inspect(messy).anomalies


def test_it_can_be_cancelled_and_leaves_nothing(messy: Node) -> None:
    before = ask(messy, ROWS)
    job_id = begin(messy, True, ("seachange.pipeline_unit_rows", "200"))

    def cancel(job: Job) -> None:
        if job.units:
            ask(messy, f"cancel job {job_id}")

    assert run(messy, job_id, cancel).status is JobStatus.CANCELED
    judge(messy, before)
    messy.collect_garbage(0)
    named = {f"{id_:016x}.parquet" for (id_,) in ask(messy, "select segment_id from seachange.segments")}
    assert set(messy.parts.files.names()) == named


@pytest.fixture
def session(messy: Node) -> Iterator[Session]:
    opened = Session(messy)
    yield opened
    opened.close()


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_vacuum_options(messy: Node, session: Session) -> None:
    for text in ("vacuum", "vacuum verbose analyze item", "vacuum (full off, analyze) item, other", "vacuum freeze"):
        assert session.execute(text).tag == "VACUUM"
    statements = [s for (s,) in ask(messy, "select statement from seachange.jobs where id > 1 order by id")]
    item, other = 'VACUUM "public"."item"', 'VACUUM "public"."other"'
    assert sorted(statements[:2]) == [item, other]
    assert statements[2:5] == [item, item, other]
    for text, code in [
        ("vacuum nothing", "42P01"),
        ("vacuum (parallel 2) item", "0A000"),
        ("vacuum item (code)", "42601"),
    ]:
        with pytest.raises(errors.Error) as problem:
            session.execute(text)
        assert problem.value.sqlstate == code
    session.execute("begin")
    with pytest.raises(errors.InsideBlock):
        session.execute("vacuum item")
    session.execute("rollback")
    session.execute("create role ann login")
    with pytest.raises(errors.InsufficientPrivilege, match="must be owner of table item"):
        Session(messy, "ann").execute("vacuum item")
    Session(messy, "ann").execute("vacuum")
