"""Three nodes and a worker, random statements and random schema changes, killed and stopped at random.

Whatever happens: every acknowledged write is there and no other, sums are kept, the checker finds nothing, every job
ends, no transaction is refused except by a constraint or a faster one, and every element is in at most two states at
a time.
`python -m tests.cluster.load.run --seconds 600` does the same for longer.
"""

from pathlib import Path

import pytest

from tests.cluster.load.run import SKEWED, run_load
from tests.support.nodes import Place

SEED = 20
SECONDS = 6
MANY = pytest.mark.slow


def judge(place: Place, folder: Path, seed: int, seconds: float, offsets_s: tuple[int, ...] = (0, 0, 0)) -> None:
    print(f"seed {seed}")
    verdict = run_load(place, folder, seed, seconds, offsets_s)
    print(verdict.summary)
    assert not verdict.problems, f"seed {seed}"


@pytest.mark.parametrize("seed", [SEED, *(pytest.param(SEED + n, marks=MANY) for n in range(1, 6))])
def test_no_row_is_lost_and_no_statement_is_rejected_without_a_reason(place: Place, tmp_path: Path, seed: int):
    judge(place, tmp_path, seed, SECONDS if seed == SEED else 60)


@pytest.mark.slow
def test_the_same_with_clocks_that_are_an_hour_off(place: Place, tmp_path: Path):
    """A node whose clock is ahead considers the others dead, on SQLite: that costs repetitions, and nothing worse."""
    judge(place, tmp_path, SEED, 30, SKEWED)
