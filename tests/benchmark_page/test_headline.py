"""The comparison: every system has an answer for every change, and traffic is counted as it happened."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.harness import Absence, Context, Unavailable
from bench.headline.changes import BATCHED_BEFORE, CAREFUL, CHANGES, DELTALAKE, DUCKLAKE, PLAIN, batches
from bench.headline.traffic import PATTERN, Traffic
from bench.measures.headline import Pair, System, lines_of, window_of
from bench.peers.client import ProcessFailed
from bench.scale import SMALL


@pytest.mark.parametrize("ways", [PLAIN, CAREFUL, DUCKLAKE, DELTALAKE])
def test_every_system_answers_every_change(ways: dict[str, object]):
    assert list(ways) == [change.name for change in CHANGES]


def test_batches_cover_every_row_once():
    covered = [row for first, last in batches(25_001) for row in range(first, last)]
    assert covered == list(range(25_001))
    assert all("{t}" in text or "function" in text for text in BATCHED_BEFORE)


class MemoryStore:
    """A table in memory whose updates fail."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.rows: set[int] = set()

    def read(self, row_id: int) -> None:
        self.kinds.append("read")

    def insert(self, row_id: int, a: int, b: float, k: str) -> None:
        self.kinds.append("insert")
        self.rows.add(row_id)

    def update(self, row_id: int, a: int) -> None:
        self.kinds.append("update")
        raise OSError("no space")

    def delete(self, row_id: int) -> None:
        self.kinds.append("delete")
        self.rows.remove(row_id)


def test_traffic_follows_the_pattern_and_counts_what_fails():
    store = MemoryStore()
    traffic = Traffic(store, rows=100)
    traffic.start(rate=10_000)
    while len(store.kinds) < 3 * len(PATTERN):
        pass
    answer = traffic.stop()
    assert store.kinds[: len(PATTERN)] == list(PATTERN)
    failed = store.kinds.count("update")
    assert answer["errors"] == {"OSError: no space": failed}
    assert len(answer["seconds"]) + failed == len(store.kinds)
    assert len(store.rows) == store.kinds.count("insert") - store.kinds.count("delete")


def test_a_window_in_which_all_waited_has_its_length_as_p99():
    window = window_of({"seconds": [], "elapsed": 8.0, "errors": {}})
    assert (window.rate, window.p99_ms) == (0.0, 8000.0)
    window = window_of({"seconds": [0.001] * 99 + [0.5], "elapsed": 10.0, "errors": {"x": 2}})
    assert (window.done, window.rate, window.p99_ms, window.failed) == (100, 10.0, 1.0, 2)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable("no such package"), "no such package"),
        (ProcessFailed("it ended\nwith 9"), "ProcessFailed: it ended with 9"),
        (OSError("disk"), "OSError: disk"),
    ],
)
def test_a_system_that_cannot_be_had_is_a_line_for_each_change(error: Exception, reason: str, tmp_path: Path):
    def run(_: Context, __: ExitStack) -> Pair:
        raise error

    lines = lines_of(System("ducklake", DUCKLAKE, run), Context(SMALL, tmp_path))
    assert [line.name for line in lines] == [f"headline.{change.name}.ducklake" for change in CHANGES]
    assert {line.reason for line in lines if isinstance(line, Absence)} == {reason}
