"""The same story on PostgreSQL, with the statements that lock: what the traffic experiences meanwhile."""

from __future__ import annotations

import time

import psycopg

from demo.processes import TrafficProcess
from demo.story import Scale, locking_form, rows, steps, tables
from demo.timeline import Mark, Timeline
from tests.support.postgres import LocalPostgres

_VERSION = 18


def run_on_postgres(scale: Scale, seed: int) -> Timeline:
    timeline = Timeline()
    with LocalPostgres(version=_VERSION) as server, psycopg.connect(server.url, autocommit=True) as connection:
        for statement in (*tables(), *rows(scale)):
            connection.execute(statement.encode())
        target = ("--postgresql", server.url)
        processes = [TrafficProcess(target, number, scale, seed, timeline.samples) for number in range(2)]
        try:
            for process in processes:
                process.wait_until_ready()
            time.sleep(scale.pause_s)
            for step in steps(scale):
                began = time.monotonic()
                try:
                    connection.execute(locking_form(step.statement).encode())
                except psycopg.errors.UniqueViolation:
                    if step.fails_with is None:
                        raise
                timeline.marks.append(Mark(step.title, began, time.monotonic()))
                time.sleep(scale.pause_s)
        finally:
            for process in processes:
                process.stop()
    return timeline
