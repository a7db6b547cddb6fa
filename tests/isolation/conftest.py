"""Databases on both catalogs, and the count of what was checked."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.databases import catalog_kind, place, place_for
from tests.support.totals import count, counted

__all__ = ["catalog_kind", "place", "place_for"]

SUITE = "isolation"


@pytest.fixture
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What the test has done; printed at the end of the run, for all of them."""
    counts: Counter[str] = Counter()
    yield counts
    count(request, SUITE, dict(counts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total = sum(map(Counter, counted(terminalreporter, SUITE)), Counter[str]())
    if total:
        terminalreporter.write_line("isolation: " + ", ".join(f"{n} {what}" for what, n in sorted(total.items())))
