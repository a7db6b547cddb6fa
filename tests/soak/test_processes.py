"""The processes of a soak end by themselves when they are asked to, also right after their start."""

import signal
from pathlib import Path

from soak.history import now_us
from soak.processes import Processes, Setting
from tests.support.patience import PATIENCE_S


def test_a_process_that_was_just_started_handles_sigterm(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    setting = Setting(tmp_path, data, "", None, None, 1, now_us(), 1_000_000, (), 1, None)
    setting.history.mkdir()
    processes = Processes(setting)
    embedded = processes.executors[1]
    try:
        processes.start(embedded)
        processes.await_beginnings(PATIENCE_S)
        embedded.signal(signal.SIGTERM)
        assert embedded.process is not None
        embedded.process.join(PATIENCE_S)
        assert embedded.poll() == 0
    finally:
        processes.kill()
