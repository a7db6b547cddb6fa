"""The example of reverts under load, for a few rows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "examples/undo/under_load.py"


@pytest.mark.either_catalog
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_changes_are_reverted_while_two_processes_write(kind, tmp_path, request):
    command = [sys.executable, str(SCRIPT), "--rows", "1000", "--batches", "1", "--data", str(tmp_path / "data")]
    if kind == "postgresql":
        command += ["--catalog", request.getfixturevalue("postgres_catalog_url")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 wrong in thing" in run.stdout


@pytest.mark.either_catalog
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_history_of_mediawiki_is_taken_back_change_by_change(kind, tmp_path, request):
    command = [sys.executable, str(SCRIPT.with_name("step_by_step.py")), "--data", str(tmp_path / "data")]
    if kind == "postgresql":
        command += ["--catalog", request.getfixturevalue("postgres_catalog_url")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "29 changes, 0 of them not reverted" in run.stdout
