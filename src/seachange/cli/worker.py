"""Run the orphaned jobs of a database: schema changes whose session has ended or whose process has died. Prints a line
for every step; stops at SIGTERM or SIGINT, leaving its jobs to another worker."""

from __future__ import annotations

import argparse
import signal
import threading
from types import FrameType

from seachange.changer.job import Job
from seachange.cli.database import add_database_options, location_of, open_database, report_error, restrict_access
from seachange.cli.log_options import add_log_options, open_log
from seachange.engine.jobs.spark_pipeline import warm_spark
from seachange.engine.session.job_session import describe
from seachange.errors import Error

_LOOK_SECONDS = 0.5
EXAMPLES = """examples:
  seachange worker --data shop
  seachange worker --data shop --catalog postgresql://localhost/shop
  seachange worker --data shop --warm
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser)
    add_log_options(parser)
    parser.add_argument("--warm", action="store_true", help="start Spark before taking jobs")


def run(arguments: argparse.Namespace) -> int:
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        restrict_access(location_of(arguments).local)
        log = open_log(arguments)
        with open_database(arguments) as node:
            node.parts.log = log
            node.jobs.on_update = _print
            # Jobs that arrive while Spark starts are left to workers that have it.
            node.jobs.takes_up = False
            warming = warm_spark(node.parts) if arguments.warm else None
            while True:
                if not node.jobs.takes_up and not (warming is not None and warming.is_starting):
                    node.jobs.takes_up = True
                    if warming is not None and warming.problem is not None:
                        report_error(warming.problem)
                    print(f"worker {node.name} is ready", flush=True)
                    node.jobs.wake()
                # With a timeout: a signal that was delivered to another thread is handled only when this one wakes up.
                if ended.wait(_LOOK_SECONDS):
                    break
            print(f"worker {node.name} stops", flush=True)
        log.close()
    except Error as error:
        report_error(error)
        return 1
    return 0


def _print(job: Job) -> None:
    print(describe(job), flush=True)
