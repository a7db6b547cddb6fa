"""Databases on both catalogs, and the count of what was checked."""

from collections import Counter

import pytest

from tests.support.databases import catalog_kind, place, place_for

__all__ = ["catalog_kind", "place", "place_for"]

COUNTS = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def counts(pytestconfig: pytest.Config) -> Counter[str]:
    """What the suite has done, printed at the end of the run."""
    return pytestconfig.stash.setdefault(COUNTS, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(COUNTS, None)
    if counts:
        terminalreporter.write_line("isolation: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
