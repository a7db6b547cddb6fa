"""SIGKILL at every fault point: what was acknowledged is there once, what was not is there whole or not at all."""

import pytest

from seachange.runtime import faults
from tests.crash.conftest import CountPassages, Passages
from tests.crash.killing import SEED, Tally, judge_after, run_until_killed
from tests.support.databases import MakePlace
from tests.support.nodes import Place
from tests.support.workers import Workers

# The first migrations are among the fault points.
pytestmark = pytest.mark.bare_catalog

OTHER_SEEDS = (1, 2)
# A commit of PostgreSQL is written inside the server; its client is killed meanwhile in test_unknown_outcomes.
ELSEWHERE = {("postgresql", "commit.written")}

# These have suites of their own.
ELSEWHERE_TESTED = ("backup.", "job.", "restore.", "block.", "identity.", "export.", "copy.")
POINTS = [point for point in faults.POINTS if not point.startswith(ELSEWHERE_TESTED)]


# The steps of a file in a folder.
OF_FOLDERS = {"segment.synced", "segment.renamed"}


def skip_elsewhere(request: pytest.FixtureRequest, kind: str, point: str) -> None:
    if (kind, point) in ELSEWHERE:
        pytest.skip(f"{point} lies inside the server of {kind}")
    if point in OF_FOLDERS and request.config.getoption("--s3"):
        pytest.skip(f"{point} is a step of folders")


def skip_other_catalog(request: pytest.FixtureRequest, kind: str, point: str, is_first: bool) -> None:
    """The first passage of each point on one of the catalogs, a later one on the other."""
    on_sqlite = (POINTS.index(point) % 2 == 0) != is_first
    if (kind == "sqlite") != on_sqlite and not request.config.getoption("--exhaustive"):
        pytest.skip("on the other catalog; run with --exhaustive")


def test_the_script_passes_every_fault_point(passages: Passages, catalog_kind: str, request: pytest.FixtureRequest):
    missed = {point for point in POINTS if not passages.get(point)}
    beside = OF_FOLDERS if request.config.getoption("--s3") else set()
    assert missed == {point for kind, point in ELSEWHERE if kind == catalog_kind} | beside


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_the_first_passage(
    point: str,
    place: Place,
    catalog_kind: str,
    workers: Workers,
    tally: Tally,
    passages: Passages,
    request: pytest.FixtureRequest,
):
    skip_elsewhere(request, catalog_kind, point)
    if passages[point] > 1 and ("postgresql", point) not in ELSEWHERE:
        skip_other_catalog(request, catalog_kind, point, is_first=True)
    check_kill(point, 1, SEED, place, catalog_kind, workers, tally)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_later_passage(
    point: str,
    place: Place,
    catalog_kind: str,
    workers: Workers,
    tally: Tally,
    passages: Passages,
    request: pytest.FixtureRequest,
):
    skip_elsewhere(request, catalog_kind, point)
    if ("postgresql", point) not in ELSEWHERE:
        skip_other_catalog(request, catalog_kind, point, is_first=False)
    # One in the second half, not the last: what follows it matters too.
    later = 1 + passages[point] * 2 // 3
    if later == 1:
        pytest.skip(f"{point} is passed once only")
    check_kill(point, later, SEED, place, catalog_kind, workers, tally)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", OTHER_SEEDS)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_passage(
    point: str,
    seed: int,
    catalog_kind: str,
    workers: Workers,
    tally: Tally,
    count_passages: CountPassages,
    place_for: MakePlace,
):
    for occurrence in range(1, count_passages(seed).get(point, 0) + 1):
        check_kill(point, occurrence, seed, place_for(f"{occurrence}"), catalog_kind, workers, tally)
        workers.end_given()


def check_kill(point: str, occurrence: int, seed: int, place: Place, kind: str, workers: Workers, tally: Tally) -> None:
    fault = f"{point}:{occurrence}"
    acknowledged = run_until_killed(workers, place, fault, seed)
    tally.kills.append((kind, point))
    problems = judge_after(place, seed, acknowledged, thorough=occurrence > 1)
    tally.violations += len(problems)
    repeat = f"SEACHANGE_FAULT={fault} python -m tests.crash.workload DATA --seed {seed}"
    assert not problems, f"after {acknowledged} steps, killed at {fault}; to repeat: {repeat}"
