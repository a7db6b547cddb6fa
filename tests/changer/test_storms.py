"""Requests that follow each other, and statements that are cancelled while their job waits for something."""

import threading

import pytest

from seachange import errors
from seachange.engine.node import Node
from seachange.engine.session import Session
from seachange.model.jobs import JobId, JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import UNIQUE, ask, begin, judge, run
from tests.support.postgres import LocalPostgres
from tests.support.workers import wait_until

PLAIN = "create unique index item_code on item (code)"


@pytest.mark.parametrize("later", ["pause", "resume"])
def test_a_cancel_is_not_taken_back_by_what_is_asked_later(node: Node, later: str):
    job_id = begin(node, UNIQUE)
    refused: list[str] = []

    def storm() -> None:
        ask(node, f"cancel job {job_id}")
        with pytest.raises(errors.NotInPrerequisiteState, match="being taken back") as caught:
            ask(node, f"{later} job {job_id}")
        refused.append(caught.value.sqlstate)

    FAULTS.arm("job.raised", storm)
    run(node, job_id)
    assert refused == ["55000"]
    judge(node, job_id, JobStatus.CANCELED)


def test_a_statement_is_cancelled_while_its_job_rests_after_an_error(node: Node):
    """Each attempt fails; the statement ends in one of the rests between them."""
    session = Session(node)

    def fail() -> None:
        FAULTS.arm("job.built", fail)
        raise errors.DiskFull(file="a segment")

    FAULTS.arm("job.built", fail)
    ender = threading.Thread(target=lambda: _end_after(node, session, "tries again"))
    ender.start()
    with pytest.raises(errors.Error) as caught:
        session.execute(PLAIN)
    assert caught.value.sqlstate == "57014"
    ender.join()
    FAULTS.disarm()
    assert "no return" not in (caught.value.hint or "")
    judge(node, JobId(1), JobStatus.CANCELED)
    session.close()


def _end_after(node: Node, session: Session, text: str) -> None:
    wait_until(lambda: any(text in event for (event,) in ask(node, "select event from seachange.events")), text)
    session.interrupt()


@pytest.mark.parametrize("catalog_kind", ["postgresql"])
def test_a_statement_is_cancelled_while_the_catalog_is_out_of_reach(node: Node, postgres_server: LocalPostgres):
    """It cannot be said of the job then that it cannot be taken back."""
    session = Session(node)

    def cut() -> None:
        postgres_server.kill()
        threading.Timer(0.5, session.interrupt).start()

    FAULTS.arm("job.raised", cut)
    with pytest.raises(errors.Error) as caught:
        session.execute(PLAIN)
    postgres_server.start()
    assert caught.value.sqlstate == "57014"
    assert "CANCEL JOB 1" in (caught.value.hint or "")
    ask(node, "cancel job 1")
    run(node, JobId(1))
    judge(node, JobId(1), JobStatus.CANCELED)
    session.close()
