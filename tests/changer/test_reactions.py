"""Which errors revert a change and which are retried: the table, and each of its rows on a job."""

import pytest

from seachange import errors
from seachange.changer.job import Job, read_job
from seachange.changer.ports import Lost
from seachange.changer.retry_policy import ATTEMPTS_MAX, REACTIONS, Reaction, reaction_to
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.model.jobs import JobId, JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import BROKEN, UNIQUE, ask, begin, judge
from tests.support.nodes import Place
from tests.support.postgres import LocalPostgres

pytestmark = pytest.mark.either_catalog

# Errors that are not in the table are retried, and reverted after the maximum number of attempts.
FAMILIES = {
    "0A000": Reaction.REVERT,
    "22P02": Reaction.REVERT,
    "23505": Reaction.REVERT,
    "42703": Reaction.REVERT,
    "54000": Reaction.REVERT,
    "55P03": Reaction.REVERT,
    "57014": Reaction.REVERT,
    "XX000": Reaction.REVERT,
    "72000": Reaction.RESTART,
    "53100": Reaction.RETRY,
    "53200": Reaction.RETRY,
    "58030": Reaction.RETRY,
    "40001": Reaction.RETRY,
    "08006": Reaction.RETRY,
}


@pytest.mark.parametrize(("sqlstate", "reaction"), FAMILIES.items())
def test_reaction_to_sqlstate(sqlstate: str, reaction: Reaction):
    problem = errors.remembered(sqlstate, "something")
    assert reaction_to(problem, 1) is reaction
    last = Reaction.REVERT if reaction is Reaction.RETRY else reaction
    assert reaction_to(problem, ATTEMPTS_MAX) is last


def test_every_row_of_the_table_is_tried():
    assert all(any(sqlstate.startswith(row) for sqlstate in FAMILIES) for row in REACTIONS)


def run(node: Node, job_id: JobId, told: list[Job] | None = None) -> Job:
    """Runs to the end, without pauses between attempts."""
    heard = told if told is not None else []
    conditions = Conditions(lambda seconds: None, SessionInterrupts(), heard.append, 100)
    with node.jobs.holding(job_id):
        return node.jobs.run(job_id, conditions)


def fail_at(point: str, problem: Exception, times: int) -> None:
    """Fails this often, from a passage of the point on."""
    name, _, occurrence = point.partition(":")

    def fail() -> None:
        FAULTS.disarm()
        if times > 1:
            fail_at(name, problem, times - 1)
        raise problem

    FAULTS.arm(name, fail, int(occurrence or 1))


def events(node: Node, text: str) -> list[str]:
    return [event for (event,) in ask(node, "select event from seachange.events order by seq") if text in event]


TRANSIENT: list[errors.Error] = [
    errors.DiskFull(file="a segment"),
    errors.InputOutputError(action="write", file="a segment", detail="cut"),
    errors.CatalogUnavailable(catalog="the catalog", detail="cut"),
    errors.UnknownCommitOutcome(commit_id="ab", detail="cut"),
    errors.OutOfMemory(detail="of it"),
    errors.SnapshotTooOld(snapshot=1, detail="given up"),
]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("point", ["job.drained", "job.unit", "job.validated", "job.published:2"])
@pytest.mark.parametrize("problem", TRANSIENT, ids=lambda problem: type(problem).__name__)
def test_temporary_errors_are_retried(node: Node, point: str, problem: errors.Error):
    job_id = begin(node, UNIQUE)
    fail_at(point, problem, 2)
    told: list[Job] = []
    run(node, job_id, told)
    judge(node, job_id, JobStatus.SUCCEEDED)
    shares = [job.fraction_done for job in told]
    assert shares == sorted(shares)
    rows = [job.rows_read for job in told]
    assert rows == sorted(rows)


def test_persistent_error_reverts_the_change(node: Node):
    job_id = begin(node, UNIQUE)
    fail_at("job.built", errors.DiskFull(file="a segment"), ATTEMPTS_MAX + 1)
    run(node, job_id)
    judge(node, job_id, JobStatus.FAILED)
    assert ask(node, "select sqlstate from seachange.jobs") == [("53100",)]
    assert len(events(node, "retries")) == ATTEMPTS_MAX - 1


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_pause_between_attempts_is_reported(node: Node):
    job_id = begin(node, UNIQUE)
    fail_at("job.built", errors.DiskFull(file="a segment"), 2)
    waited: list[str] = []

    def pause(seconds: float) -> None:
        if seconds:
            waited.extend(text for (text,) in ask(node, "select waiting_for from seachange.jobs") if text)

    conditions = Conditions(pause, SessionInterrupts(), lambda job: None, 200)
    with node.jobs.holding(job_id):
        node.jobs.run(job_id, conditions)
    judge(node, job_id, JobStatus.SUCCEEDED)
    rests = [text for text in waited if text.startswith("attempt")]
    assert [text.partition(",")[0] for text in rests] == ["attempt 2", "attempt 3"]
    assert all("UTC, after an error: 53100: " in text for text in rests)
    assert ask(node, "select waiting_for from seachange.jobs") == [(None,)]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("point", ["job.drained", "job.unit", "job.validated"])
def test_bug_reverts_the_change_and_logs_its_traceback(node: Node, point: str):
    job_id = begin(node, UNIQUE)
    fail_at(point, KeyError("unheard of"), 1)
    run(node, job_id)
    judge(node, job_id, JobStatus.FAILED)
    ((code, text),) = ask(node, "select sqlstate, error from seachange.jobs")
    assert code == "XX000"
    assert "unheard of" in text
    (traced,) = events(node, "reverts: XX000")
    assert "Traceback" in traced


def test_bug_after_publication_is_retried(node: Node):
    job_id = begin(node, UNIQUE)
    fail_at("job.published:2", KeyError("unheard of"), 1)
    run(node, job_id)
    judge(node, job_id, JobStatus.SUCCEEDED)
    (traced,) = events(node, "retries after an error: XX000")
    assert "Traceback" in traced


def test_the_reason_of_a_failure_stays(node: Node, shop: Place):
    """After a restart, and on another node: the constraint, and rows that violate it."""
    job_id = begin(node, BROKEN)
    run(node, job_id)
    broken = begin(node, "alter table concurrently item add constraint small check (id < 100)")
    run(node, broken)
    other = open_node(shop.data, shop.catalog, name="there")
    other.jobs.paused = True
    try:
        for asked in (node, other):
            shown = ask(asked, "select sqlstate, error from seachange.jobs order by id")
            assert [code for code, _ in shown] == ["23505", "23514"]
            assert "item_category" in shown[0][1]
            assert "(category)=(" in shown[0][1]
            assert '"small"' in shown[1][1]
            assert "(id)=(" in shown[1][1]
    finally:
        other.close()


def test_progress_has_a_rate_and_an_end(node: Node):
    job_id = begin(node, UNIQUE)
    seen: list[tuple[object, ...]] = []
    shown = f"select rows_done, rows_total, rows_per_second, eta from seachange.jobs where id = {job_id}"
    FAULTS.arm("job.unit", lambda: seen.extend(ask(node, shown)))
    run(node, job_id)
    ((done, total, rate, eta),) = seen
    assert (done, total) == (500, 1000)
    assert isinstance(rate, float)
    assert rate > 0
    assert eta is not None
    record = node.parts.catalog.job(job_id)
    assert record is not None
    assert read_job(record).fraction_done == 1.0
    stages = ask(node, "select stage, rows, duration_ms >= 0 from seachange.job_stages order by number")
    assert [stage for stage, _, _ in stages] == ["drain", "backfill", "mutation", "drain", "validation", "mutation"]


@pytest.mark.parametrize("catalog_kind", ["postgresql"])
@pytest.mark.parametrize("point", ["commit.queued:3", pytest.param("job.validated", marks=pytest.mark.slow)])
def test_runner_waits_for_an_unavailable_catalog(
    node: Node, postgres_server: LocalPostgres, point: str, monkeypatch: pytest.MonkeyPatch
):
    """The server is killed in the middle of the job, and restarted when the runner waits for it."""
    # How long a commit queries its outcome before it is reported as unknown.
    monkeypatch.setattr(node.parts.catalog, "_patience_s", 1.0)
    job_id = begin(node, UNIQUE)
    name, _, occurrence = point.partition(":")
    FAULTS.arm(name, postgres_server.kill, int(occurrence or 1))
    waited: list[float] = []

    def pause(seconds: float) -> None:
        if seconds > 0 and FAULTS.counts().get(name, 0) >= int(occurrence or 1):
            waited.append(seconds)
            postgres_server.start()

    while True:
        try:
            with node.jobs.holding(job_id):
                node.jobs.run(job_id, Conditions(pause, SessionInterrupts(), lambda job: None, 100))
            break
        except Lost:
            # Its epoch has ended meanwhile.
            ask(node, "select 1")
    FAULTS.disarm()
    assert waited
    judge(node, job_id, JobStatus.SUCCEEDED)
