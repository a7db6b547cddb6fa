"""Queued statements: beginning a queued job when its turn comes."""

from __future__ import annotations

from collections.abc import Collection

from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId


def begin_queued(node: Node, job: Job, interrupts: SessionInterrupts) -> Collection[JobId]:
    """Plans and begins the statement of a queued job, as the user who sent it; returns the jobs that block it. It may
    have to wait for transactions that hold locks on what it changes; an interrupt ends that wait."""
    assert job.queued is not None
    session = Session(node, job.queued.user, job.queued.database)
    try:
        for name, value in job.queued.settings:
            session.settings.set(name, value)
        with interrupts.reaching(session):
            in_the_way = session.begin_queued(job)
        for notice in session.notices:
            node.parts.catalog.log_event(notice, job.id)
        return in_the_way
    finally:
        session.close()
