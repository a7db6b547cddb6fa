import subprocess
import sys

_PROGRAM = """
import duckdb
import gc
from seachange.runtime.garbage import freeze_loaded
freeze_loaded()
assert gc.get_freeze_count()
"""


def test_a_process_that_has_frozen_its_objects_exits_without_leaks():
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
