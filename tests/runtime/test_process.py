"""Processes: their priority, and whether one of another name has ended, which is known on the same machine only."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from seachange.runtime import process
from seachange.runtime.process import give_way, is_gone, name_process

# Without the rest of the package, which takes longer to import.
LOAD = f"import runpy, sys; process = runpy.run_path({process.__file__!r});"
SHOW = f"{LOAD} print(process['name_process'](), flush=True); input()"
JUDGE = f"{LOAD} print(process['is_gone'](sys.argv[1]))"


def unshare(*options: str) -> list[str]:
    """A command that runs another one in namespaces of its own; skips the test where that is not allowed."""
    command = ["unshare", *options]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("namespaces cannot be created here")
    return command


def judged(name: str, *command: str) -> bool:
    shown = subprocess.run([*command, sys.executable, "-c", JUDGE, name], capture_output=True, text=True, check=True)
    return shown.stdout.strip() == "True"


@contextmanager
def running(*command: str) -> Iterator[str]:
    """The name of a process that runs meanwhile."""
    with subprocess.Popen(
        [*command, sys.executable, "-c", SHOW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        yield other.stdout.readline().strip()
        other.stdin.close()


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_lower_priority_affects_one_thread():
    before = nice()
    with ThreadPoolExecutor(1, initializer=give_way) as hand:
        assert hand.submit(nice).result() > before
    assert nice() == before


def test_process_is_gone_when_it_has_ended():
    with running() as name:
        assert not is_gone(name)
    assert is_gone(name)


def test_number_given_to_another_process_is_not_the_same_process():
    place, number, started = name_process().rsplit(" ", 2)
    assert not is_gone(f"{place} {number} {started}")
    assert is_gone(f"{place} {number} {int(started) - 1}")


def test_nothing_is_known_of_other_machines():
    assert not is_gone("")
    assert not is_gone("another-machine pid:[1] 1 1")


def test_stopped_process_is_not_gone():
    with running() as name:
        number = int(name.rsplit(" ", 2)[1])
        os.kill(number, signal.SIGSTOP)
        try:
            assert not is_gone(name)
        finally:
            os.kill(number, signal.SIGCONT)


def test_clocks_of_another_namespace_declare_no_process_gone():
    shifted = unshare("--time", "--boottime", "1000")
    with running() as name:
        assert not judged(name, *shifted)
    with running(*shifted) as name:
        assert not is_gone(name)


def test_numbers_of_another_namespace_declare_no_process_gone():
    inside = unshare("--pid", "--fork", "--mount-proc")
    with running() as name:
        assert not judged(name, *inside)
    with running(*inside) as name:
        assert not is_gone(name)


def test_process_that_sees_the_numbers_of_another_namespace_has_no_name():
    with running(*unshare("--pid", "--fork")) as name:
        assert name == ""


def test_hidden_process_is_not_gone():
    hiding = unshare("--pid", "--fork", "--mount-proc")
    script = """
        mount -t proc -o hidepid=invisible proc /proc || exit 3
        exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -c "$1" "$2"
    """
    # A process of another user asks for the first process of the namespace, which its /proc does not show.
    starter = f"""
import subprocess
{LOAD}
name = process["name_process"]()
shown = subprocess.run(["sh", "-c", {script!r}, sys.executable, {JUDGE!r}, name], stdout=subprocess.PIPE)
print(shown.returncode, shown.stdout.decode().strip())
"""
    shown = subprocess.run([*hiding, sys.executable, "-c", starter], capture_output=True, text=True, check=True)
    if shown.stdout.startswith("3"):
        pytest.skip("/proc cannot be mounted here")
    assert shown.stdout.strip() == "0 False"
