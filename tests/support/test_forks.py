"""A fork is a process like any other: it hears, answers, fails, and can be killed."""

import json
import os
import signal

from tests.support.forks import Fork


def test_a_fork_reads_and_answers():
    with Fork("tests.crash.workload") as process:
        assert json.loads(process.stdout.readline()) == {"ready": True}
        process.stdin.close()
        assert process.wait() == 0
        assert process.stdout.read() == b""


def test_errors_of_a_fork_are_on_its_standard_error():
    with Fork("tests.catalog.worker", "too few arguments") as process:
        assert process.wait() == 1
        assert b"ValueError" in process.stderr.read()


def test_it_says_that_it_was_killed():
    with Fork("tests.crash.workload") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_it_has_no_file_of_the_tests_open():
    """Or the end of one process would not be the end of its pipes."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with Fork("tests.crash.workload") as process, Fork("tests.crash.workload") as other:
        for started in (process, other):
            started.stdout.readline()
        os.close(writing)
        assert os.read(reading, 1) == b""
        os.close(reading)
        process.kill()
        assert process.stdout.read() == b""
