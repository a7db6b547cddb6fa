"""What a suite counts, added up over all of its tests and printed at the end of the run.

Counts travel with the reports of the tests, so they add up whichever process ran a test.
"""

from typing import Any

import pytest


def count(test: pytest.FixtureRequest, suite: str, value: Any) -> None:
    """Adds a value, made of lists, mappings, strings and numbers, to those of a suite; to be called by a fixture."""
    test.node.user_properties.append((suite, value))


def counted(reporter: pytest.TerminalReporter, suite: str) -> list[Any]:
    """The values of all tests that were run."""
    reports = [report for several in reporter.stats.values() for report in several]
    ended = [report for report in reports if getattr(report, "when", None) == "teardown"]
    return [value for report in ended for name, value in report.user_properties if name == suite]
