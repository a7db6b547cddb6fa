"""The rate of tasks, by a clock of the test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seachange import errors
from seachange.pipeline.throttling.throttle import Throttling
from seachange.runtime.filesystem import LocalFileSystem


class Hands:
    """A clock that advances by the pauses of its users."""

    def __init__(self) -> None:
        self.us = 5_000_000
        self.waited: list[float] = []

    def wall_us(self) -> int:
        return self.us

    def steady_us(self) -> int:
        return self.us

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.us += round(seconds * 1_000_000)


@pytest.fixture
def parallelism() -> Hands:
    return Hands()


def test_io_rate_delays_tasks(parallelism: Hands):
    throttling = Throttling(bytes_per_second=1_000, pause=parallelism.pause, clock=parallelism)
    throttling.admit(1_000, 1_000)
    assert parallelism.waited == []
    assert not throttling.is_free(0)
    throttling.admit(500, 0)
    assert parallelism.waited == [2.0]
    # Tasks that took longer by themselves do not save up time.
    parallelism.us += 60_000_000
    assert throttling.is_free(0)
    throttling.admit(3_000, 0)
    assert parallelism.waited == [2.0]
    throttling.admit(1, 0)
    assert parallelism.waited == [2.0, 3.0]


def test_no_delay_without_a_limit(parallelism: Hands):
    throttling = Throttling(pause=parallelism.pause, clock=parallelism)
    for _ in range(3):
        throttling.admit(1 << 40, 1 << 40)
    assert parallelism.waited == []


class Disk(LocalFileSystem):
    def free_bytes(self) -> int:
        return 1_000


REFUSED: list[Callable[[Throttling], Any]] = [
    lambda throttling: throttling.admit(0, 601),
    lambda throttling: throttling.admit(0, 300, 301),
    lambda throttling: throttling.begin("a", "work", 601),
]


@pytest.mark.parametrize("refused", REFUSED)
def test_disk_reserve_is_kept(tmp_path: Path, refused: Callable[[Throttling], Any]):
    throttling = Throttling(Disk(tmp_path), spare_bytes=400)
    throttling.admit(1 << 40, 600)
    throttling.admit(1 << 40, 300, 300)
    assert throttling.is_free(600)
    assert not throttling.is_free(601)
    with pytest.raises(errors.OperationalError, match=str(tmp_path)) as problem:
        refused(throttling)
    assert problem.value.sqlstate == "53100"
    # It is checked again before anything is read.
    if isinstance(problem.value, errors.LowDisk):
        with pytest.raises(errors.LowDisk):
            throttling.check_space()
        throttling.spare_bytes = 0
    throttling.check_space()
    # A task that only reads needs none.
    Throttling(Disk(tmp_path), spare_bytes=1 << 40).admit(1, 0)


def test_work_that_has_begun_is_not_refused(tmp_path: Path):
    throttling = Throttling(Disk(tmp_path), spare_bytes=400)
    throttling.begin("a", "work", 600)
    throttling.spare_bytes = 1_000
    throttling.begin("a", "work", 600)
    with pytest.raises(errors.WillNotFit):
        throttling.begin("b", "work", 600)


def test_a_folder_knows_its_free_space(tmp_path: Path):
    assert LocalFileSystem(tmp_path).free_bytes() > 0
