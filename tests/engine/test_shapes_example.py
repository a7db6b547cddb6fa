"""The example of two releases on one table, for a few rows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "examples/shapes/two_releases.py"


@pytest.mark.either_catalog
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_releases_write_one_table(kind, tmp_path, request):
    command = [sys.executable, str(SCRIPT), "--seconds", "0", "--batches", "4", "--data", str(tmp_path / "data")]
    if kind == "postgresql":
        command += ["--catalog", request.getfixturevalue("postgres_catalog_url")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1090 rows, 0 of them wrong; counted 90 of 90" in run.stdout
