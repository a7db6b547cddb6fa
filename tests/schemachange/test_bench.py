"""Every case to its end, and interrupted: cancelled, paused, crashed and spoiled at every moment.

By default each case is run once, interrupted in one of the ways or not; `--exhaustive` is the product.
"""

from collections.abc import Iterator

import pytest

from tests.schemachange.bench import Bench, How, Interruption, Outcome
from tests.schemachange.case import Case
from tests.schemachange.cases import CASES
from tests.schemachange.judging import judge
from tests.schemachange.traffic import DENSE
from tests.schemachange.world import Worlds

COMMITS = ("commit.written", "commit.decided", "commit.applied")
POINTS = (
    "job.raised",
    "job.published",
    "commit.decided",
    "job.built",
    "job.validated",
    "segment.renamed",
    "job.attached",
)
# On PostgreSQL one case of so many is run; neither has a divisor in common with the ways to interrupt one, so that
# there is some of each.
SAMPLED, SAMPLED_EXHAUSTIVELY = 7, 3


def run(worlds: Worlds, case: Case, interruption: Interruption | None = None, dense: bool = False) -> Outcome:
    crowd = DENSE if dense else 1
    place = worlds.make(case, crowd)
    with Bench(place, case, interruption, dense, crowd) as bench:
        outcome = bench.run()
        problems = judge(bench, outcome, interruption)
    assert not problems, f"{case.name}, {interruption or 'to its end'}:\n" + "\n".join(problems)
    worlds.forget(place)
    return outcome


def interruptions(case: Case, whole: Outcome) -> dict[How, list[Interruption]]:
    """All that can happen to a case, of which it is known how it goes if nothing happens to it."""
    moments = range(2, whole.moments + 1)
    crashes = [(moment, point) for moment, points in whole.points.items() for point in points]
    spoils = range(1, whole.moments + 2) if case.spoil else ()
    return {
        How.CRASH: [Interruption(How.CRASH, moment, point) for moment, point in crashes],
        How.CANCEL: [Interruption(How.CANCEL, moment) for moment in moments if moment in whole.revertible],
        How.PAUSE: [Interruption(How.PAUSE, moment) for moment in moments if moment in whole.revertible],
        How.SPOIL: [Interruption(How.SPOIL, moment) for moment in spoils],
    }


def sampled(number: int, case: Case) -> Interruption | None:
    """One way for each case, and others for others; if the change is over before, it was run to its end."""
    if case.at_once:
        return Interruption(How.CRASH, 0, COMMITS[number % len(COMMITS)]) if number % 2 else None
    turn, how = number // len(How), list(How)[number % len(How)]
    match how:
        case How.CRASH:
            return Interruption(how, 1 + turn % 3, POINTS[turn % len(POINTS)])
        case How.SPOIL:
            return Interruption(how, 1 + turn % 6) if case.spoil else None
        case How.CANCEL | How.PAUSE:
            return Interruption(how, 2 + turn % 5)


def _numbered(catalog_kind: str, sampled: int) -> Iterator[tuple[int, Case]]:
    """All cases on SQLite, on PostgreSQL one of so many."""
    for number, case in enumerate(CASES):
        if catalog_kind == "sqlite" or number % sampled == 1:
            yield number, case


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("catalog_kind", "number", "case"),
    [
        pytest.param(kind, number, case, id=f"{kind}-{case.name.replace(' ', '_')}")
        for kind in ("sqlite", "postgresql")
        for number, case in _numbered(kind, SAMPLED)
    ],
)
def test_a_case(worlds: Worlds, case: Case, number: int):
    run(worlds, case, sampled(number, case))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize(
    ("catalog_kind", "case"),
    [
        pytest.param(kind, case, id=f"{kind}-{case.name.replace(' ', '_')}")
        for kind in ("sqlite", "postgresql")
        for _, case in _numbered(kind, SAMPLED_EXHAUSTIVELY)
    ],
)
def test_every_interruption(worlds: Worlds, case: Case, how: How):
    possible = interruptions(case, run(worlds, case))[how]
    problems = []
    for interruption in possible:
        try:
            outcome = run(worlds, case, interruption)
            assert outcome.interrupted, f"{case.name}, {interruption}: nothing happened"
        except AssertionError as problem:
            problems.append(str(problem))
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_every_writer_at_every_moment(worlds: Worlds, case: Case):
    run(worlds, case, dense=True)
