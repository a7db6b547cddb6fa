"""One run: a database, processes on it, faults, and the verdict."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from soak.auditor import Auditor, Found
from soak.checker.growth import check_growth
from soak.checker.model import Violation
from soak.connections import WireOpener
from soak.faults import DISK, FAULTS, POSTGRES, Disturber, SmallDisk
from soak.history import History, now_us
from soak.processes import Place, Processes, Setting
from soak.report import Report
from soak.sampler import Sampler
from soak.schema import STATEMENTS
from soak.workload import Pace
from tests.support.postgres import LocalPostgres, find_free_port
from tests.support.s3 import S3Server

SECOND = 1_000_000
ROUND_US = 8 * SECOND
READY_SECONDS = 300
END_SECONDS = 300
# A process may fail to start for this long after a fault.
EXCUSED_US = 20 * SECOND
JOBS = "select id, status, statement, error from seachange.jobs where status not in ('succeeded', 'failed', 'canceled')"
DEFECTS = "select id, statement, error from seachange.jobs where sqlstate like 'XX%'"
SETTINGS = """\
[seachange]
node_expiry = "3s"
retention = "30s"
pipeline_free_space = "8MB"
"""


@dataclass(frozen=True, slots=True)
class Options:
    seconds: float
    seed: int
    catalog: str
    processes: int = 2
    writers: int = 4
    faults: tuple[str, ...] = FAULTS
    plant: str | None = None
    in_store: bool = False
    expected: frozenset[str] = frozenset()
    keep_going: bool = False
    keep: bool = False


class NotReady(Exception):
    """The processes did not begin."""


def run_soak(options: Options) -> Report:
    """Runs, checks, and gives the report."""
    print(f"soak: seed {options.seed}, {options.catalog}, {options.seconds:.0f} s begin", flush=True)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix=f"soak-{options.catalog}-{options.seed}-", dir=_memory()))
        if options.keep:
            print(f"histories and logs are kept in {folder}", flush=True)
        else:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk, skipped = stack.enter_context(_disk(folder, options))
        data = (disk.folder if disk is not None else folder) / "data"
        data.mkdir(parents=True, mode=0o700)
        store = stack.enter_context(_store()) if options.in_store else None
        server = stack.enter_context(LocalPostgres(fsync=False)) if options.catalog == "postgresql" else None
        if server is None and POSTGRES in options.faults:
            skipped |= {POSTGRES: "the catalog is not on PostgreSQL"}
        catalog = server.create_database() if server is not None else None
        if store is not None and catalog is None:
            catalog = f"sqlite:///{folder}/catalog.sqlite"
        return _Run(options, folder, data, catalog, disk, server, store, skipped).run()


@contextmanager
def _store() -> Iterator[S3Server]:
    with S3Server() as server:
        os.environ.update(server.environment(server.port))
        yield server


def _memory() -> Path | None:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30 else None


@contextmanager
def _disk(folder: Path, options: Options) -> Iterator[tuple[SmallDisk | None, dict[str, str]]]:
    if DISK not in options.faults:
        yield None, {}
        return
    disk = SmallDisk(folder / "disk")
    reason = disk.mount()
    if reason is not None:
        yield None, {DISK: reason}
        return
    try:
        yield disk, {}
    finally:
        disk.unmount()


class _Run:
    def __init__(
        self,
        options: Options,
        folder: Path,
        data: Path,
        catalog: str | None,
        disk: SmallDisk | None,
        server: LocalPostgres | None,
        store: S3Server | None,
        skipped: dict[str, str],
    ) -> None:
        self._options = options
        self._skipped = skipped
        ports = tuple(find_free_port() for _ in range(options.processes))
        url = f"{store.create_place()}/soak" if store is not None else None
        self._setting = Setting(
            folder,
            data,
            SETTINGS,
            url,
            catalog,
            options.seed,
            now_us(),
            ROUND_US,
            ports,
            options.writers,
            options.plant,
        )
        self._setting.history.mkdir()
        kinds = tuple(kind for kind in options.faults if kind not in skipped)
        self._processes = Processes(self._setting)
        pace = Pace(self._setting.start_us, ROUND_US)
        self._sampler = Sampler(data, self._setting.start_us)
        history = History(self._setting.history)
        opener = WireOpener(ports)
        self._auditor = Auditor(opener, history, pace, options.seed, kinds, self._sampler, expected=options.expected)
        chance = random.Random(f"{options.seed} faults")
        self._disturber = Disturber(self._processes, chance, kinds, self._auditor.dead.put, disk, server, store)

    def run(self) -> Report:
        try:
            self._begin()
            began = time.monotonic()
            thread = threading.Thread(target=self._auditor.run, name="auditor")
            thread.start()
            try:
                self._disturb(began + self._options.seconds)
            finally:
                self._auditor.ended.set()
                thread.join()
            seconds = time.monotonic() - began
            self._end()
            return self._report(seconds)
        finally:
            self._processes.kill()

    def _begin(self) -> None:
        first, *rest = self._processes.nodes
        self._processes.start(first)
        self._wait_for([first])
        with psycopg.connect(self._url(0), autocommit=True) as connection:
            for statement in STATEMENTS:
                connection.execute(statement.encode())
        for place in [*rest, *self._processes.executors]:
            self._processes.start(place)
        self._wait_for(self._processes.all)

    def _url(self, number: int) -> str:
        return f"postgresql://seachange@127.0.0.1:{self._setting.ports[number]}/seachange"

    def _wait_for(self, places: list[Place]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not all(place.ready_us for place in places):
            self._processes.note_ready()
            ended = [place for place in places if place.poll() is not None]
            if time.monotonic() > deadline or ended:
                raise NotReady("\n".join(_end_of(place.log) for place in ended or places))
            time.sleep(0.05)

    def _disturb(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            time.sleep(0.1)
            self._processes.note_ready()
            if self._disturber.kinds:
                self._disturber.poll()
            self._sampler.poll(self._processes.all)
            self._revive()
            if self._auditor.unexpected and not self._options.keep_going:
                break
        self._disturber.end()

    def _revive(self) -> None:
        """A process that ended by itself is started again; that is a violation unless a fault explains it."""
        for place in self._processes.all:
            code = place.poll()
            if code is None:
                continue
            if now_us() - self._disturber.broken_us > EXCUSED_US:
                self._add("process ended", f"{place.name} ended with {code}:\n{_end_of(place.log)}")
            self._disturber.counts["restarts"] += 1
            if place.clients:
                self._auditor.dead.put(place.clients[-1])
            self._processes.start(place)

    def _end(self) -> None:
        """Clients first: they finish their transactions."""
        self._processes.await_beginnings(END_SECONDS)
        deadline = time.monotonic() + END_SECONDS
        executors = self._processes.executors
        for place in executors:
            place.signal(signal.SIGTERM)
        self._resume_jobs(lambda: all(place.poll() is not None for place in executors), deadline)
        for place in executors:
            self._end_clients(place)
            self._auditor.dead.put(place.clients[-1])
        if not self._resume_jobs(self._has_no_jobs, time.monotonic() + END_SECONDS):
            self._add("no end", f"jobs did not end within {END_SECONDS} s: {self._jobs()}")
        self._auditor.finish()
        self._look_for_defects()
        for place in self._processes.nodes:
            place.signal(signal.SIGTERM)
        for place in self._processes.nodes:
            self._wait_end(place)
        self._check_files()

    def _end_clients(self, place: Place) -> None:
        """Makes their threads print stack traces, in case they hang."""
        if place.poll() is None:
            place.signal(signal.SIGABRT)
            assert place.process is not None
            place.process.join(10)
            self._add("no end", f"{place.name} did not end within {END_SECONDS} s: {_end_of(place.log)}")
        elif place.poll() != 0:
            self._add("process ended", f"{place.name} ended with {place.poll()}:\n{_end_of(place.log)}")
        place.kill()

    def _look_for_defects(self) -> None:
        """Internal errors that no client saw: in the records of jobs, and in events."""
        for id_, statement, error in self._ask(DEFECTS):
            self._add("defect", f"job {id_}: {statement}: {error}")
        for (event,) in self._ask("select event from seachange.events where event like '%XX000%'"):
            self._add("defect", event)

    def _check_files(self) -> None:
        """The engine's own check of files and indexes, which knows more of them than the checker does."""
        command = [sys.executable, "-m", "seachange.cli.main", "check", *self._setting.options("check")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self._add("seachange check", f"{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _wait_end(self, place: Place) -> None:
        deadline = time.monotonic() + END_SECONDS
        while place.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if place.poll() != 0:
            self._add("process ended", f"{place.name} ended with {place.poll()} at SIGTERM:\n{_end_of(place.log)}")

    def _resume_jobs(self, done: Callable[[], bool], deadline: float) -> bool:
        """Statements may wait for jobs that were paused."""
        while not done():
            if time.monotonic() > deadline:
                return False
            for id_, status, *_ in self._jobs():
                if status == "paused":
                    self._ask(f"select seachange.resume_job({id_})")
            time.sleep(0.2)
        return True

    def _has_no_jobs(self) -> bool:
        return not self._jobs() and self._ask("select 1") == [(1,)]

    def _jobs(self) -> list[tuple[Any, ...]]:
        return self._ask(JOBS)

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        for number in range(len(self._setting.ports)):
            try:
                with psycopg.connect(self._url(number), autocommit=True, connect_timeout=20) as connection:
                    return connection.execute(sql.encode()).fetchall()
            except psycopg.Error:
                continue
        return []

    def _add(self, anomaly: str, detail: str) -> None:
        after = (now_us() - self._setting.start_us) / SECOND
        self._auditor.found.append(Found(Violation(anomaly, detail), -1, after))

    def _report(self, seconds: float) -> Report:
        for violation in check_growth(self._sampler.samples):
            self._add(violation.anomaly, violation.detail)
        for place in self._processes.all:
            if "Traceback" in place.log.read_text(errors="replace"):
                self._add("complaint", f"{place.name}: {_traceback_of(place.log)}")
        auditor, options = self._auditor, self._options
        return Report(
            seed=options.seed,
            catalog=options.catalog,
            seconds=seconds,
            plant=options.plant,
            found=auditor.found,
            expected=options.expected,
            counts=auditor.counts,
            faults=self._disturber.counts,
            refusals=auditor.refusals,
            changes=auditor.changes,
            samples=self._sampler.samples,
            skipped=self._skipped,
        )


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def _traceback_of(log: Path) -> str:
    text = log.read_text(errors="replace")
    start = text.index("Traceback")
    return text[max(0, start - 300) : start + 3000]
