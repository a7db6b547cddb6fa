"""The examples do what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"


# A JVM of its own, and a process that changes the table.
def test_no_dataframe_fails_for_changes_of_its_table(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "spark_writes.py"), "--data", str(tmp_path / "data")]
    done = subprocess.run(
        [*command, "--rounds", "1", "--rows", "500"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "and none failed" in done.stdout
    assert done.stdout.count("changed: ") == 7
    assert done.stdout.splitlines()[-1] == "consistent"


# Several JVMs, twice.
@pytest.mark.slow
def test_an_aggregate_is_kept_up_to_date_through_changes_and_kills(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "stream_orders.py"), "--data", str(tmp_path / "data"), "--orders", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the executor was killed" in done.stdout
    assert "orders are right" in done.stdout
    assert done.stdout.splitlines()[-1] == "consistent"
