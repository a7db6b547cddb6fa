"""The log: one line for each entry, rotation, and outputs that do not take what is written."""

import json
import os
import threading

import pytest

from seachange.runtime.event_log import EventLog, LogFile, LogFormat, LogStream
from tests.support.workers import wait_until


def read_lines(path):
    return path.read_text().splitlines()


def test_text_and_json_have_one_line_for_each_entry(tmp_path):
    for format_ in LogFormat:
        log = EventLog(LogFile(tmp_path / format_, 0, 0), format_)
        log.info("login", role="ann\nFORGED", rows=3, gone=None)
        log.error("internal error", message='a "quoted" = one\x1b[2J')
        log.close()
    first, second = read_lines(tmp_path / "text")
    assert first.split(" ", 1)[1] == 'INFO    login role="ann\\nFORGED" rows=3'
    assert second.endswith('ERROR   internal error message="a \\"quoted\\" = one\\u001b[2J"')
    entries = [json.loads(line) for line in read_lines(tmp_path / "json")]
    assert entries[0] | {"time": ""} == {
        "time": "",
        "level": "info",
        "event": "login",
        "role": "ann\nFORGED",
        "rows": 3,
    }


def test_a_file_is_rotated_by_size_and_kept_from_others(tmp_path):
    path = tmp_path / "log"
    output = LogFile(path, 100, 2)
    for number in range(6):
        output.write([f"{number} " + "x" * 120])
    output.close()
    assert sorted(os.listdir(tmp_path)) == ["log", "log.1", "log.2"]
    assert [read_lines(tmp_path / name)[0][0] for name in ("log", "log.1", "log.2")] == ["5", "4", "3"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_away_is_opened_again(tmp_path):
    path = tmp_path / "log"
    output = LogFile(path, 0, 0)
    output.write(["before"])
    path.rename(tmp_path / "moved")
    output.write(["after"])
    output.close()
    assert (read_lines(tmp_path / "moved"), read_lines(path)) == (["before"], ["after"])


def test_a_full_pipe_blocks_no_writer_and_drops_are_counted():
    reading, writing = os.pipe()
    log = EventLog(LogStream(writing))
    # More than a pipe, the entries that are being written and those that wait hold.
    for _ in range(25_000):
        log.info("filler", text="x" * 100)
    found = bytearray()

    def read():
        while b"log entries dropped" not in found:
            found.extend(os.read(reading, 1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    log.close()
    reader.join()
    os.close(writing)
    os.close(reading)


class Failing:
    def __init__(self):
        self.lines = []
        self.is_full = True

    def write(self, lines):
        taken = list(lines)
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.lines += taken

    def close(self):
        pass


def test_a_full_disk_costs_entries_only():
    output = Failing()
    log = EventLog(output)
    log.info("lost")
    wait_until(lambda: log.dropped == 1, "the entry to be dropped")
    output.is_full = False
    log.info("kept")
    log.close()
    assert any(" kept" in line for line in output.lines)
    assert any("log entries dropped entries=1" in line for line in output.lines)


@pytest.mark.parametrize("format_", LogFormat)
def test_a_text_with_broken_characters_is_logged(tmp_path, format_):
    log = EventLog(LogFile(tmp_path / "log", 0, 0), format_)
    log.info("login", role="\udcff")
    log.close()
    assert "udcff" in (tmp_path / "log").read_text()
