"""Work that is interrupted, and what is left behind."""

from seachange import errors
from seachange.changer.job import read_job
from seachange.model.jobs import JobStatus
from seachange.runtime.faults import FAULTS
from tests.scenarios.scenario import ROWS, Scenario

INDEX = "create index concurrently item_code on item (code)"


def test_a_checkpoint_that_fails_once_does_not_end_checkpoints(db: Scenario):
    """CockroachDB PR #141714: the writer of checkpoints failed once and never wrote again."""
    job_id = db.begin(INDEX)
    kept: list[int] = []

    def fail() -> None:
        FAULTS.arm("job.unit", note)
        raise errors.InputOutputError(action="write", file="the checkpoint", detail="once")

    def note() -> None:
        record = db.node.parts.catalog.job(job_id)
        assert record is not None
        kept.append(len(read_job(record).units))

    FAULTS.arm("job.unit", fail)
    assert db.finish(job_id) == ""
    # The unit before the error was kept, and so was the one after it.
    assert kept == [2]
    db.judge()


def test_a_resumed_job_skips_nothing_that_was_not_done(db: Scenario):
    """CockroachDB PR #77797: a resumed job skipped spans because of an old checkpoint."""
    job_id = db.begin(INDEX)

    def pause() -> None:
        db.run(f"pause job {job_id}")

    FAULTS.arm("job.unit", pause)
    assert db.run_job(job_id).status is JobStatus.PAUSED
    FAULTS.disarm()
    db.run("update item set code = 'again ' || id where id % 3 = 0")
    db.run(f"resume job {job_id}")
    assert db.finish(job_id) == ""
    assert db.entries("item_code") == ROWS
    db.judge()


def test_a_failed_create_leaves_no_name(db: Scenario):
    """CockroachDB #171064, #109678: a failed CREATE left a back-reference, or a name without an object."""
    assert db.refuse("create table child (id int primary key, item int references item (code))") == "42830"
    assert db.refuse("create table child (id int primary key, id int)") == "42701"
    assert db.change("create unique index concurrently again on item (category)") == "23505"
    db.run("create table child (id int primary key, item int references item)")
    db.run("drop table child")
    db.run("create table again (id int primary key)")
    db.run("drop table item")


def test_garbage_is_collected_while_files_change_hands(db: Scenario):
    """pg_repack #399: two owners of one file during the swap, while vacuum ran: rows were lost silently."""

    def collect() -> None:
        db.node.collect_garbage(0)

    assert db.change("alter table concurrently item alter primary key using columns (n)", collect) == ""
    assert db.change(INDEX, collect) == ""
    assert db.run("select count(*), sum(id)::int from item") == [(ROWS, ROWS * (ROWS + 1) // 2)]
    db.judge()
