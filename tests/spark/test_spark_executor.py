"""Tasks on a real Spark: whatever happens to an attempt, each task is done once and its files are known."""

import os
import pickle
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from seachange import errors
from seachange.pipeline.spark.host import HOST, Application
from seachange.pipeline.spark.packed_task import Outcome, Trace, run_assignment
from seachange.pipeline.spark_options import SparkOptions
from seachange.pipeline.throttling.throttle import Throttling
from seachange.runtime.filesystem import LocalFileSystem
from tests.spark import flaky
from tests.spark.bench import Bench
from tests.spark.flaky import Halfway, Troubled
from tests.support.workers import wait_until


@pytest.fixture(scope="module", autouse=True)
def sent_along() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(flaky)
    yield
    cloudpickle.unregister_pickle_by_value(flaky)


@pytest.fixture
def bench(tmp_path: Path, application: Application) -> Bench:
    return Bench(tmp_path, application)


@pytest.mark.parametrize("how", ["raise", "die"])
def test_an_attempt_that_fails_is_made_again_under_other_names(bench: Bench, how: str) -> None:
    results = bench.run(Troubled(bench.marks, how))
    (used,) = results[0]
    assert len(bench.attempts()) == 2
    # The first attempt may still be writing its files; ids that were not sent are garbage at once.
    assert set(bench.left) == {bench.reserved[0]}
    assert used not in bench.left + bench.given_up
    assert {used, *bench.left, *bench.given_up} == set(bench.reserved)
    assert any("retried" in line for line in bench.told)


def test_a_task_that_fails_more_often_than_it_has_names_is_sent_again(bench: Bench) -> None:
    results = bench.run(Troubled(bench.marks, "raise", failing=2))
    assert len(bench.attempts()) == 3
    assert {results[0][0], *bench.left, *bench.given_up} == set(bench.reserved)
    assert len(bench.reserved) == 4


def test_a_task_that_always_fails_is_an_error(bench: Bench) -> None:
    with pytest.raises(errors.SparkFailed, match="too often"):
        bench.run(Troubled(bench.marks, "raise", failing=99))
    assert len(bench.attempts()) == 4


def test_an_error_of_the_data_is_not_tried_again(bench: Bench) -> None:
    with pytest.raises(errors.DatabaseError) as problem:
        bench.run(Troubled(bench.marks, "refuse", failing=99))
    assert problem.value.sqlstate == errors.DivisionByZero.sqlstate
    assert len(bench.attempts()) == 1


def test_a_task_with_too_few_names_gets_more(bench: Bench) -> None:
    results = bench.run(Troubled(bench.marks, "ask", failing=1))
    assert len(bench.attempts()) == 2
    assert results[0][0] in bench.reserved
    assert len(bench.reserved) == 2 * 1 + 2 * 4


def test_results_come_as_tasks_end(bench: Bench, tmp_path: Path) -> None:
    """One that hangs does not keep back another's."""
    other = tmp_path / "other"
    other.mkdir()
    seen: list[int] = []

    def done(place: int, result: Any) -> None:
        seen.append(place)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run(Troubled(bench.marks, "hang"), Troubled(other, "hang", failing=0), done=done)
    assert seen == [1]
    wait_until(lambda: not any(map(_lives, bench.attempts())), "the task that hangs to be killed")


class SideBySide:
    """An application that makes attempts side by side: of those at a task it is the first that ends first."""

    own, users, slots, is_alive, log = True, 0, 1, True, Path()

    def __init__(self, speculates: bool, attempt: int = 0) -> None:
        self.speculates = speculates
        self.attempt = attempt

    def warm_up(self) -> None: ...

    def group(self) -> AbstractContextManager[str]:
        return nullcontext("group")

    def call(self, payload: bytes, group: str, title: str) -> Outcome:
        _, body = pickle.loads(payload)
        return run_assignment(pickle.loads(body), Trace(self.attempt, 7, "here"))

    def cancel(self, group: str) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize("speculates", [True, False])
def test_names_of_an_attempt_that_may_be_at_work_are_not_garbage(tmp_path: Path, speculates: bool) -> None:
    """A file that is written after its name was collected would stay for ever."""
    bench = Bench(tmp_path, SideBySide(speculates))
    results = bench.run(Troubled(bench.marks, "raise", failing=0, segments=2))
    first, second = bench.reserved[:2], bench.reserved[2:]
    assert results[0] == first[:1]
    assert (bench.given_up, bench.left) == ((first[1:], second) if speculates else (first[1:] + second, []))


@pytest.mark.parametrize("speculates", [True, False])
def test_an_attempt_without_names_leaves_those_of_others(tmp_path: Path, speculates: bool) -> None:
    bench = Bench(tmp_path, SideBySide(speculates, attempt=2))
    with pytest.raises(errors.SparkFailed, match="too often"):
        bench.run(Troubled(bench.marks, "raise"))
    assert (bench.given_up, bench.left) == ([], bench.reserved)


def test_an_interrupt_reaches_tasks_that_run(bench: Bench) -> None:
    bench.executor = replace(
        bench.executor, on_progress=lambda rows: bench.interrupts.set() if bench.attempts() else None
    )
    with pytest.raises(errors.QueryCanceled):
        bench.run(*[Troubled(bench.marks, "hang", failing=99)] * 5)
    wait_until(lambda: not any(map(_lives, bench.attempts())), "the tasks to be killed")
    assert set(bench.left) == set(bench.reserved)
    # No more were begun than there are hands.
    assert len(bench.attempts()) <= 2


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_no_more_tasks_run_at_a_time_than_cores_are_allowed(bench: Bench) -> None:
    assert bench.executor.parallelism == 2
    assert replace(bench.executor, cores=1).parallelism == 1
    assert replace(bench.executor, cores=9).parallelism == 2


def test_an_application_that_is_used_is_not_stopped(application: Application) -> None:
    HOST.stop_idle()
    assert application.is_alive
    with HOST.using(SparkOptions("local[1]"), lambda: None) as found:
        assert found is application


def test_an_application_on_this_machine_gives_way_to_those_who_serve(application: Application) -> None:
    """The workers have the priority of the JVM that they are children of, as that has its own."""
    started = application._context.parallelize([0], 1).map(lambda _: os.getpriority(os.PRIO_PROCESS, 0))
    assert started.first() > os.getpriority(os.PRIO_PROCESS, 0)


class Disk(LocalFileSystem):
    """One that is full as soon as something has begun to be written."""

    def __init__(self, folder: Path, marks: Path) -> None:
        super().__init__(folder)
        self._marks = marks

    def free_bytes(self) -> int:
        return 0 if list(self._marks.iterdir()) else 150


def test_what_is_under_way_is_kept_when_there_is_no_space_for_more(bench: Bench, tmp_path: Path) -> None:
    throttling = Throttling(Disk(tmp_path / "segments", bench.marks))
    bench.executor = replace(
        bench.executor, kernel_context=replace(bench.executor.kernel_context, throttling=throttling)
    )
    tasks = [Troubled(bench.marks, "raise", failing=0, write_bytes=100) for _ in range(3)]
    results: dict[int, Any] = {}
    with pytest.raises(errors.LowDisk):
        bench.run(*tasks, done=results.__setitem__)
    # There was space for one, and none beside it.
    assert list(results) == [0]
    assert len(bench.attempts()) == 1


def test_how_far_a_task_is_reaches_the_driver_while_it_runs(bench: Bench, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    seen: list[int] = []

    def on_progress(rows: int) -> None:
        seen.append(rows)
        if rows:
            gate.touch()

    bench.executor = replace(bench.executor, on_progress=on_progress)
    results: dict[int, bool] = {}
    bench.executor.run([Halfway(gate)], results.__setitem__, [1_000])
    # It has gone on because it was seen, not because it had waited long enough.
    assert results == {0: True}
    assert 500 in seen
    assert seen == sorted(seen)
    # Nothing of it is left.
    assert [path.name for path in (tmp_path / "spill").iterdir()] == ["lock"]
