"""Tasks in this process."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.pipeline.kernels.executor import LocalExecutor, run_all
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.sql.translate.duck_errors import translate_error
from tests.storage.samples import Store


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@dataclass(frozen=True)
class OnProgress:
    """Returns the priority that it runs at, or fails."""

    problem: Exception | None = None
    title: str = "looks"
    segments: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    steps: int = 1

    def run(self, kernel_context: KernelContext) -> int:
        if self.problem is not None:
            raise self.problem
        return nice()


@pytest.fixture
def executor(tmp_path: Path) -> LocalExecutor:
    store = Store(tmp_path / "segments")
    return LocalExecutor(KernelContext(store.warehouse, tmp_path, store.reserve, SessionInterrupts(), translate_error))


def test_tasks_run_at_lower_priority_than_their_caller(executor: LocalExecutor):
    before = nice()
    assert all(found > before for found in run_all(executor, [OnProgress(), OnProgress()]))
    assert nice() == before


def test_exception_of_a_task_ends_the_others(executor: LocalExecutor):
    done: list[int] = []
    with pytest.raises(errors.DivisionByZero):
        executor.run(
            [OnProgress(), OnProgress(errors.DivisionByZero()), OnProgress()], lambda number, _: done.append(number)
        )
    assert done == [0]
