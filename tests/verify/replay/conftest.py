"""How much was replayed, and what was not; printed at the end of the run."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.totals import count, counted
from tests.verify.replay.tally import Tally, add_up

SUITE = "replay"


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    tally = Tally()
    yield tally
    counts = {name: dict(getattr(tally, name)) for name in ("steps", "left_out", "cut")}
    count(request, SUITE, {"walks": tally.walks, **counts})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    values = counted(terminalreporter, SUITE)
    total = add_up(Tally(v["walks"], *(Counter(v[name]) for name in ("steps", "left_out", "cut"))) for v in values)
    if total.walks:
        for line in total.lines():
            terminalreporter.write_line(line)
