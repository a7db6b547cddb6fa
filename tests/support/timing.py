"""Which tests cost the most: `make test ARGS=--time-by-folder` prints processor time and elapsed time of each folder.

Elapsed time on a busy machine says more about the other programs than about the tests, so processor time comes first.
It includes every process that the tests started, also servers that go on running: what a fixture of the session costs
counts for the test that needed it first.
"""

import os
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.totals import counted

OPTION = "--time-by-folder"
SUITE = "cost"
TESTS_SHOWN = 40
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted from behind the name of the program: the parent, and the times of the process and of those
# of its children that have ended.
_PARENT, _TIMES = 1, slice(11, 15)


def read_cpu_s(root: int) -> float:
    """The processor time of a process and all its descendants since they began."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for folder in os.listdir("/proc"):
        if not folder.isdigit():
            continue
        try:
            fields = Path("/proc", folder, "stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[_PARENT]), []).append(int(folder))
        ticks[int(folder)] = sum(map(int, fields[_TIMES]))
    found, total = [root], 0
    for pid in found:
        total += ticks.get(pid, 0)
        found += children.get(pid, [])
    return total / _TICKS_PER_S


class Meter:
    """Counts for each test what was spent since the test before it ended."""

    def __init__(self) -> None:
        self.cpu_s, self.now_s = read_cpu_s(os.getpid()), time.monotonic()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        try:
            return (yield)
        finally:
            cpu_s, now_s = read_cpu_s(os.getpid()), time.monotonic()
            # A process that outlives its parent is lost from sight, with what it has spent so far.
            spent = [max(cpu_s - self.cpu_s, 0.0), now_s - self.now_s]
            self.cpu_s, self.now_s = cpu_s, now_s
            item.user_properties.append((SUITE, [item.nodeid, *spent]))


def print_times(reporter: pytest.TerminalReporter) -> None:
    """The table, most expensive folder first, and the most expensive tests."""
    costs = counted(reporter, SUITE)
    cpu_s: Counter[str] = Counter()
    elapsed_s: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for name, cpu, elapsed in costs:
        folder = "/".join(name.partition("::")[0].split("/")[:-1][:3])
        for key in (folder, "total"):
            cpu_s[key] += cpu
            elapsed_s[key] += elapsed
            tests[key] += 1
    reporter.section("time by folder")
    reporter.write_line(f"{'cpu s':>8} {'elapsed s':>10} {'tests':>6}  folder")
    for folder, cpu in cpu_s.most_common():
        reporter.write_line(f"{cpu:8.1f} {elapsed_s[folder]:10.1f} {tests[folder]:6}  {folder}")
    reporter.write_line(f"the {TESTS_SHOWN} tests that took most:")
    for name, cpu, elapsed in sorted(costs, key=lambda cost: -cost[1])[:TESTS_SHOWN]:
        reporter.write_line(f"{cpu:8.1f} {elapsed:10.1f}         {name}")
