"""The count of kills and violations, and how often the script passes each fault point."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

import pytest

from tests.crash.killing import SEED, Tally, add_up
from tests.crash.script import make_script
from tests.support.databases import MakePlace, all_workers, catalog_kind, place, place_for, workers
from tests.support.totals import count, counted
from tests.support.workers import Workers

__all__ = ["all_workers", "catalog_kind", "place", "place_for", "workers"]

SUITE = "crash"

Passages = Mapping[str, int]
CountPassages = Callable[[int], Passages]


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """What the test does; printed at the end of the run, for all of them."""
    tally = Tally()
    yield tally
    count(request, SUITE, asdict(tally))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = add_up(Tally(**values) for values in counted(terminalreporter, SUITE))
    if tally.kills:
        terminalreporter.write_line(tally.line(), red=bool(tally.violations), green=not tally.violations)


@pytest.fixture(scope="session")
def known_passages() -> dict[tuple[str, int], Passages]:
    return {}


@pytest.fixture
def count_passages(
    known_passages: dict[tuple[str, int], Passages], catalog_kind: str, workers: Workers, place_for: MakePlace
) -> CountPassages:
    """How often the whole script passes each fault point; measured once, by a run without a kill."""

    def count_with(seed: int) -> Passages:
        if (catalog_kind, seed) not in known_passages:
            worker = workers.take()
            worker.open(place_for(f"counted {seed}"), counts=True)
            worker.send("run", seed=seed, first=0, last=len(make_script(seed)))
            assert "done" in worker.hear_until("done", "error")[-1]
            known_passages[catalog_kind, seed] = worker.ask("count")["counts"]
            assert worker.ask("close") == {"closed": True}
        return known_passages[catalog_kind, seed]

    return count_with


@pytest.fixture
def passages(count_passages: CountPassages) -> Passages:
    return count_passages(SEED)
