"""A power cut: what the file system was not asked to make durable is gone, and nothing acknowledged is missed.

SIGKILL never loses the page cache, so the file-system port keeps a journal of what it made durable, and the rest is
taken away after the process has died.
"""

from pathlib import Path
from typing import Any

import pytest

from seachange.runtime.faults import POINTS
from tests.crash.conftest import Passages
from tests.crash.killing import SEED, Tally, judge_after, run_until_killed
from tests.crash.script import make_script
from tests.support.judge import judge_script
from tests.support.nodes import Place, open_ported_node
from tests.support.power_cut import lose_unsynced
from tests.support.workers import Workers

WRITING = [point for point in POINTS if point.partition(".")[0] in ("segment", "bulk", "compaction", "gc")]
# The files are the same on both catalogs; on the second these suffice, unless all is asked for.
ON_BOTH = ("segment.renamed", "segment.published", "compaction.swapped", "gc.deleted")


def writing_points() -> list[Any]:
    rest = [point for point in WRITING if point not in ON_BOTH]
    return [
        *(pytest.param("sqlite", point) for point in WRITING),
        *(pytest.param("postgresql", point) for point in ON_BOTH),
        *(pytest.param("postgresql", point, marks=pytest.mark.slow) for point in rest),
    ]


@pytest.mark.parametrize(("catalog_kind", "point"), writing_points(), indirect=["catalog_kind"])
def test_power_is_cut_at_a_fault_point(
    point: str,
    place: Place,
    catalog_kind: str,
    workers: Workers,
    tally: Tally,
    passages: Passages,
    tmp_path: Path,
):
    journal = tmp_path / "journal"
    fault = f"{point}:{1 + passages[point] * 2 // 3}"
    acknowledged = run_until_killed(workers, place, fault, SEED, power_cut=str(journal))
    tally.kills.append((catalog_kind, point))
    lose_unsynced(place.segments, journal, frozenset())
    problems = judge_after(place, SEED, acknowledged)
    tally.violations += len(problems)
    assert not problems, f"after {acknowledged} steps, power cut at {fault}, seed {SEED}"


def run_and_cut_power(workers: Workers, place: Place, journal: Path, skip: str = "") -> int:
    """The whole script, then the power cut, with nothing under way; gives the number of steps."""
    worker = workers.take()
    worker.open(place, power_cut=f"{journal}:{skip}" if skip else str(journal))
    worker.send("run", seed=SEED, first=0, last=len(make_script(SEED)))
    assert "done" in worker.hear_until("done", "error")[-1]
    worker.kill()
    lose_unsynced(place.segments, journal, frozenset())
    return len(make_script(SEED))


def judge_only(place: Place, steps: int) -> list[str]:
    node = open_ported_node(place)
    try:
        return judge_script(node, SEED, steps)
    finally:
        node.close()


def test_power_is_cut_after_the_last_answer(place: Place, workers: Workers, tmp_path: Path):
    assert not judge_only(place, run_and_cut_power(workers, place, tmp_path / "journal"))


@pytest.mark.parametrize("skip", ["file", "folder"])
def test_a_step_that_is_left_out_is_noticed(skip: str, place: Place, workers: Workers, tmp_path: Path):
    problems = judge_only(place, run_and_cut_power(workers, place, tmp_path / "journal", skip))
    assert any(".parquet" in problem for problem in problems)
