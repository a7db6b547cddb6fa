"""Processes: their priority, and whether one of another name has ended, which is known on the same machine only."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from seachange.runtime.process import give_way, is_gone, name_process


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_lower_priority_affects_one_thread():
    before = nice()
    with ThreadPoolExecutor(1, initializer=give_way) as hand:
        assert hand.submit(nice).result() > before
    assert nice() == before


def test_process_is_gone_when_it_has_ended():
    code = "from seachange.runtime.process import name_process; print(name_process(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert not is_gone(name)
        other.stdin.close()
        other.wait()
        assert is_gone(name)


def test_number_given_to_another_process_is_not_the_same_process():
    place, number, started = name_process().rsplit(" ", 2)
    assert not is_gone(f"{place} {number} {started}")
    assert is_gone(f"{place} {number} {int(started) - 1}")


def test_nothing_is_known_of_other_machines():
    assert not is_gone("")
    assert not is_gone("another-machine pid:[1] 1 1")
