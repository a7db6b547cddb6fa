"""The progress of a running task is known, and gets into the record of its job."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.model.jobs import JobStatus
from seachange.pipeline.kernels.executor import LocalExecutor
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.spark.progress_file import ProgressFile, read_signs, sign_of
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.runtime.faults import FAULTS
from seachange.sql.translate.duck_errors import translate_error
from tests.changer.changing import ROWS, UNIQUE, ask, begin, judge, prepare, run
from tests.storage.samples import Store
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until


@dataclass
class Running:
    done: float = 0.0
    was_interrupted: threading.Event = field(default_factory=threading.Event)

    def steps_done(self) -> float:
        return self.done

    def interrupt(self) -> None:
        self.was_interrupted.set()


@given(st.integers(1, 5), st.lists(st.lists(st.floats(0, 3), max_size=5), max_size=4))
def test_progress_never_decreases(steps: int, queries: list[list[float]]) -> None:
    meter = ProgressMeter(steps)
    told = [meter.read()]
    for moments in queries:
        running = Running()
        with meter.watching(running):
            for running.done in moments:
                told.append(meter.read())
        told.append(meter.read())
    assert told == sorted(told)
    assert told[-1] < 1


@dataclass
class Gated:
    """A task that pauses at half until that is reported."""

    seen: threading.Event
    running: Running = field(default_factory=Running)
    title: str = "waits"
    segments: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    steps: int = 2

    def run(self, kernel_context: KernelContext) -> bool:
        with kernel_context.meter.watching(self.running):
            self.running.done = 1.0
            return self.seen.wait(PATIENCE_S)


def local_executor(folder: Path) -> LocalExecutor:
    store = Store(folder / "segments")
    return LocalExecutor(KernelContext(store.warehouse, folder, store.reserve, SessionInterrupts(), translate_error))


def test_progress_of_a_running_task_is_reported(tmp_path: Path) -> None:
    seen = threading.Event()

    def on_progress(rows: int) -> None:
        if rows == 50:
            seen.set()

    executor = local_executor(tmp_path)
    results: list[bool] = []
    LocalExecutor(executor.kernel_context, on_progress=on_progress).run(
        [Gated(seen)], lambda _, result: results.append(result), [100]
    )
    assert results == [True]


def test_abandoned_task_is_interrupted(tmp_path: Path) -> None:
    def on_progress(rows: int) -> None:
        raise KeyboardInterrupt

    running = Running()
    task = Gated(running.was_interrupted, running)
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(local_executor(tmp_path).kernel_context, on_progress=on_progress).run(
            [task], lambda _, result: None, [100]
        )
    assert running.was_interrupted.is_set()


def test_progress_file_grows_with_progress(tmp_path: Path) -> None:
    meter, running = ProgressMeter(4), Running()
    progress_file = ProgressFile(meter, sign_of(tmp_path, 7), 33)
    with meter.watching(running):
        progress_file.report()
        assert read_signs(tmp_path) == {}
        for running.done in (1.0, 1.0, 3.0):
            progress_file.report()
    assert read_signs(tmp_path) == {7: 0.75}
    # Of several attempts the most advanced one counts; a missing folder is ignored.
    ProgressFile(meter, sign_of(tmp_path, 7), 34).report()
    assert read_signs(tmp_path) == {7: 0.75}
    ProgressFile(meter, sign_of(tmp_path / "gone", 1), 1).report()
    assert read_signs(tmp_path / "gone") == {}


def test_progress_of_a_running_unit_is_in_the_job_record(tmp_path: Path) -> None:
    """The kernel waits, with its rows sorted and nothing written, until a client sees progress."""
    place = Place(tmp_path / "data")
    prepare(place)
    node = open_node(place.data, place.catalog)
    node.jobs.paused = node.maintenance.paused = True
    told: list[int] = []

    def some_are_done() -> bool:
        ((rows_done, rows_total, progress),) = ask(node, "select rows_done, rows_total, progress from seachange.jobs")
        told.append(rows_done)
        return bool(0 < rows_done < rows_total and 0 < progress < 1)

    try:
        job_id = begin(node, UNIQUE)
        FAULTS.arm("bulk.sorted", lambda: wait_until(some_are_done, "rows of the unit to be told"))
        job = run(node, job_id)
        assert FAULTS.counts()["bulk.sorted"] >= 1
        judge(node, job_id, JobStatus.SUCCEEDED)
        assert told == sorted(told)
        assert max(told) < ROWS
        # Backfill and validation: each row was counted once by each.
        assert job.rows_read == job.rows_total == 2 * ROWS
    finally:
        FAULTS.disarm()
        node.close()
