"""The example of a night on call, as a person would run it."""

import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "examples/operations/night_on_call.py"


def test_a_night_on_call_ends_well():
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for line in (
        "a forgotten console of seachange, idle in transaction",
        "the change is finished",
        "succeeded  100%",
        "orders work again",
        "50000 orders are served again",
        "the night is over",
    ):
        assert line in run.stdout
