"""The count of kills and violations, and how often the script passes each fault point."""

from collections.abc import Callable, Mapping

import pytest

from tests.crash.killing import SEED, Tally
from tests.crash.script import make_script
from tests.support.databases import MakePlace, all_workers, catalog_kind, place, place_for, workers
from tests.support.workers import Workers

__all__ = ["all_workers", "catalog_kind", "place", "place_for", "workers"]

TALLY = pytest.StashKey[Tally]()

Passages = Mapping[str, int]
CountPassages = Callable[[int], Passages]


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash.setdefault(TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash.get(TALLY, None)
    if tally is not None and tally.kills:
        terminalreporter.write_line(tally.line(), red=bool(tally.violations), green=not tally.violations)


@pytest.fixture(scope="session")
def counted() -> dict[tuple[str, int], Passages]:
    return {}


@pytest.fixture
def count_passages(
    counted: dict[tuple[str, int], Passages], catalog_kind: str, workers: Workers, place_for: MakePlace
) -> CountPassages:
    """How often the whole script passes each fault point; found out once, by a run that nobody kills."""

    def count(seed: int) -> Passages:
        if (catalog_kind, seed) not in counted:
            worker = workers.take()
            worker.open(place_for(f"counted {seed}"), counts=True)
            worker.send("run", seed=seed, first=0, last=len(make_script(seed)))
            assert "done" in worker.hear_until("done", "error")[-1]
            counted[catalog_kind, seed] = worker.ask("count")["counts"]
            assert worker.ask("close") == {"closed": True}
        return counted[catalog_kind, seed]

    return count


@pytest.fixture
def passages(count_passages: CountPassages) -> Passages:
    return count_passages(SEED)
