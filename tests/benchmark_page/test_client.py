"""A process that answers is heard, one that does not is given up."""

import sys
from pathlib import Path

import pytest

from bench.peers.client import ProcessFailed, run_module


def test_a_process_that_gives_no_answer_is_given_up():
    with run_module("slow", "tests.benchmark_page.slow_process", Path(sys.executable)) as client:
        assert client.request("quick") == {"text": "x" * 100_000}
        with pytest.raises(ProcessFailed, match="slow gave no answer within"):
            client.request("never", 0.2)


def test_an_error_of_the_process_is_one_of_the_request():
    with (
        run_module("slow", "tests.benchmark_page.slow_process", Path(sys.executable)) as client,
        pytest.raises(ProcessFailed, match="slow: LookupError: nothing here"),
    ):
        client.request("fail")
