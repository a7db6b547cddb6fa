"""A change that meets another one of the same table: every row of the planner's table, on real jobs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.planner.exclusion import ChangeKind, ExclusionDecision, decide
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import check
from tests.changer.changing import UNIQUE, ask, begin, indexes, judge, run
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

# What is decided here does not depend on the catalog; the last test, of jobs that run, is for both.
ON_SQLITE = pytest.mark.parametrize("catalog_kind", ["sqlite"])

BY_KIND = {
    ChangeKind.LABEL: ["comment on table item is 'things'", "comment on column item.code is 'a code'"],
    ChangeKind.METADATA: [
        "alter table item add column more int default 1",
        "alter table item rename column category to kind",
        "alter table item drop column category",
        "alter table item rename to thing",
    ],
    ChangeKind.BUILD: ["create index item_more on item (category)", "alter table item add check (id > 0)"],
    ChangeKind.WORK: ["alter table item add column more uuid default gen_random_uuid()"],
    ChangeKind.TRUNCATE: ["truncate item"],
    ChangeKind.DROP: ["drop table item"],
}
CASES = [(kind, statement) for kind, statements in BY_KIND.items() for statement in statements]
IN_BLOCK = [case for case in CASES if case[0] not in (ChangeKind.BUILD, ChangeKind.WORK, ChangeKind.DROP)]


@contextmanager
def statement(session: Session, *texts: str) -> Iterator[list[str]]:
    """Sends statements from another thread; yields the list of their outcomes."""
    ended: list[str] = []

    def send() -> None:
        try:
            for text in texts:
                session.execute(text)
            ended.append("")
        except errors.Error as problem:
            ended.append(problem.sqlstate)

    thread = threading.Thread(target=send)
    thread.start()
    yield ended
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    opened = Session(node)
    yield opened
    opened.close()


def waits(session: Session, job_id: int) -> None:
    wait_until(lambda: any(f"waits for job {job_id}" in notice for notice in session.notices), "it to say so")


@ON_SQLITE
@pytest.mark.parametrize(("kind", "sql"), CASES, ids=[sql for _, sql in CASES])
def test_while_a_job_works(node: Node, session: Session, kind: ChangeKind, sql: str):
    job_id = begin(node, UNIQUE)
    answer = decide(ChangeKind.BUILD, kind).answer
    if answer is ExclusionDecision.PROCEED:
        session.execute(sql)
        assert run(node, job_id).status is JobStatus.SUCCEEDED
        assert indexes(node)["item_code"] == "PUBLIC"
        assert check(node) == []
        return
    with statement(session, sql) as ended:
        waits(session, job_id)
        assert not ended
        run(node, job_id)
    assert ended == [""]
    status = JobStatus.CANCELED if answer is ExclusionDecision.CANCEL else JobStatus.SUCCEEDED
    record = node.parts.catalog.job(job_id)
    assert record is not None
    assert record.status is status


@ON_SQLITE
def test_an_index_that_is_being_built_is_renamed_afterwards(node: Node, session: Session):
    job_id = begin(node, UNIQUE)
    with statement(session, "alter index item_code rename to by_code") as ended:
        waits(session, job_id)
        run(node, job_id)
    assert ended == [""]
    assert "by_code" in indexes(node)


@ON_SQLITE
def test_a_change_is_not_planned_with_what_a_job_has_finished_since(node: Node, session: Session):
    """The job is not found any more, but the table of the snapshot still looks as it left it halfway."""
    job_id = begin(node, UNIQUE)
    transaction = node.begin()
    run(node, job_id)
    with pytest.raises(errors.RowChanged):
        transaction.definitions.check_newest([transaction.schema.table(None, "item").id])
    transaction.rollback()
    transaction = node.begin()
    transaction.definitions.check_newest([transaction.schema.table(None, "item").id])
    transaction.rollback()


@ON_SQLITE
@pytest.mark.parametrize("sql", ["drop table item", "truncate item", "alter table item add column more int"])
def test_lock_timeout_ends_the_wait(node: Node, session: Session, sql: str):
    job_id = begin(node, UNIQUE)
    session.execute("set lock_timeout = '50ms'")
    with pytest.raises(errors.LockNotAvailable, match=f"job {job_id}"):
        session.execute(sql)


@ON_SQLITE
def test_a_drop_waits_for_what_is_past_its_point_of_no_return(node: Node, session: Session):
    job_id = begin(node, UNIQUE)
    ended: list[list[str]] = []

    def drop() -> None:
        FAULTS.disarm()
        with statement(session, "set lock_timeout = '50ms'", "drop table item") as answer:
            ended.append(answer)

    FAULTS.arm("job.published", drop, 2)
    run(node, job_id)
    assert ended == [["55P03"]]
    judge(node, job_id, JobStatus.SUCCEEDED)
    session.execute("drop table item")


@ON_SQLITE
@pytest.mark.parametrize(("kind", "sql"), IN_BLOCK, ids=[sql for _, sql in IN_BLOCK])
def test_change_in_a_block_is_decided_alike(node: Node, session: Session, kind: ChangeKind, sql: str):
    """A change without a job waits too, and then sees the result of the job."""
    job_id = begin(node, UNIQUE)
    proceeds = decide(ChangeKind.BUILD, kind).answer is ExclusionDecision.PROCEED
    with statement(session, "begin", "insert into other values (1001, 'x')", sql) as ended:
        if not proceeds:
            waits(session, job_id)
            assert not ended
            run(node, job_id)
    assert ended == [""]
    session.execute("commit")
    if proceeds:
        run(node, job_id)
    assert ask(node, "select status from seachange.jobs") == [("succeeded",)]
    assert ask(node, "select count(*) from other where id = 1001") == [(1,)]


@ON_SQLITE
@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_in_a_block_a_drop_does_not_end_a_job(node: Node, session: Session, end: str):
    """It could not be restored if the block is rolled back."""
    job_id = begin(node, UNIQUE)
    with statement(session, "begin", "drop table item", end) as ended:
        waits(session, job_id)
        assert not ended
        run(node, job_id)
    assert ended == [""]
    assert ask(node, "select status from seachange.jobs") == [("succeeded",)]
    if end == "rollback":
        judge(node, job_id, JobStatus.SUCCEEDED)


LABELS = ["comment on table item is 'things'", "comment on column item.code is 'a code'"]
BLOCKS = [
    "alter table item add column more int",
    "alter table item drop column category",
    "comment on table item is 'other'",
]


@ON_SQLITE
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("label", LABELS)
def test_comments_and_grants_do_not_wait_for_an_open_change(node: Node, session: Session, block: str, label: str):
    """Neither waits, and both take effect; of two comments on the same object, the later one."""
    session.execute("begin")
    session.execute(block)
    session.execute("insert into other values (1001, 'x')")
    ask(node, "set lock_timeout = '1min'; " + label)
    session.execute("commit")
    node.epoch.catch_up()
    table = node.epoch.schemas.newest.within().by_name["public", "item"]
    said = [comment.text for comment in table.access.comments]
    wanted = {"'other'" if "is 'other'" in block else "", label.rpartition(" is ")[2]} - {""}
    assert set(said) == ({"other"} if wanted == {"'other'", "'things'"} else {text.strip("'") for text in wanted})
    assert ("more" in table.column_by_name) == ("more" in block)
    assert ("category" in table.column_by_name) == ("category" not in block)
    assert check(node) == []


@ON_SQLITE
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("change", "sqlstate"), [("add column more int", ""), ("drop column code", "40001")])
def test_change_does_not_wait_for_uncommitted_comments_and_grants(
    node: Node, session: Session, label: str, change: str, sqlstate: str
):
    """Only the objects that they refer to must still exist."""
    with statement(session, "begin", label, "insert into other values (1001, 'x')") as ended:
        pass
    assert ended == [""]
    ask(node, f"set lock_timeout = '1min'; alter table item {change}")
    with statement(session, "commit") as ended:
        pass
    assert ended == [sqlstate if "column" in label else ""]
    assert check(node) == []


@ON_SQLITE
@pytest.mark.parametrize("said", ["null", "'later'"])
def test_comment_during_a_type_change_is_kept(node: Node, said: str):
    job_id = begin(
        node,
        "alter table item add constraint u unique (code)",
        "comment on column item.code is 'a code'",
        "comment on constraint u on item is 'a key'",
        "alter table concurrently item alter code type text using code || ''",
    )
    for what in ("column item.code", "constraint u on item"):
        ask(node, f"comment on {what} is {said}")
    run(node, job_id)
    node.epoch.catch_up()
    table = node.epoch.schemas.newest.within().by_name["public", "item"]
    assert [comment.text for comment in table.access.comments] == ([] if said == "null" else ["later", "later"])
    assert check(node) == []


@ON_SQLITE
def test_in_a_block_lock_timeout_ends_the_wait(node: Node, session: Session):
    job_id = begin(node, UNIQUE)
    session.execute("set lock_timeout = '50ms'")
    session.execute("begin")
    with pytest.raises(errors.LockNotAvailable, match=f"job {job_id}"):
        session.execute("alter table item add column more int")
    session.execute("rollback")


@ON_SQLITE
@pytest.mark.parametrize("level", ["read committed", "serializable"])
def test_block_that_has_waited_for_a_job_succeeds_at_every_level(node: Node, session: Session, level: str):
    job_id = begin(node, UNIQUE)
    first = [f"begin isolation level {level}", "select count(*) from item"]
    with statement(session, *first, "alter table item add column more int", "commit") as ended:
        waits(session, job_id)
        run(node, job_id)
    assert ended == [""]


def test_jobs_of_other_tables_are_not_waited_for(node: Node, session: Session):
    """One is held inside of its backfill; all kinds of changes of another table come and go meanwhile."""
    job_id = begin(node, UNIQUE)
    done = threading.Event()

    def hold() -> None:
        done.wait(PATIENCE_S)

    FAULTS.arm("job.built", hold)
    running = threading.Thread(target=lambda: run(node, job_id))
    running.start()
    wait_until(lambda: FAULTS.counts().get("job.built"), "the first to be at its work")
    for sql in (
        "create unique index other_code on other (code)",
        "alter table other add column more int default 3",
        "alter table other add constraint positive check (id > 0)",
        "truncate other",
        "drop table other",
        "create table another (id int primary key)",
    ):
        session.execute(sql)
    assert running.is_alive()
    done.set()
    running.join()
    assert indexes(node)["item_code"] == "PUBLIC"
    assert not [notice for notice in session.notices if "waits" in notice]
