"""A short run of the whole soak, on both catalogs, and planted defects that it finds within a minute.

It is run as `make soak` runs it, but for its priority: a test waits for it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SEED = 20_261
SECONDS = 15
REPOSITORY = Path(__file__).parents[2]


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "soak", "--nice", "0", "--seed", str(SEED), *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("catalog", ["sqlite", "postgresql"])
def test_short_soak_finds_no_violation(catalog: str):
    done = soak("--seconds", str(SECONDS), "--catalog", catalog)
    assert "no violation" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("catalog", ["sqlite", "postgresql"])
def test_short_soak_over_an_object_store_finds_no_violation(catalog: str):
    done = soak("--seconds", str(SECONDS), "--catalog", catalog, "--s3")
    assert "no violation" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("catalog", ["sqlite", "postgresql"])
@pytest.mark.parametrize("plant", ["fence-off", "frozen-snapshot", "no-conflicts", "unchecked-constraints"])
def test_planted_defect_is_found_within_a_minute(catalog: str, plant: str):
    """It ends with the first violation."""
    done = soak("--seconds", "60", "--catalog", catalog, "--plant", plant)
    assert "VIOLATION" in done.stdout
    assert done.returncode == 1
