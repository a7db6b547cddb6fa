"""Model and engine say the same, step by step: traces that cover every kind of step at every stage of every scenario.

The walks are in `testdata/walks.txt`, since it takes longer to find them than to replay them. `--rewrite` finds them
again, `--exhaustive` shows that they still cover everything, and replays walks that tell versions apart, too.
"""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from seachange.verify.model.scenario import Scenario, Size
from seachange.verify.model.scenarios import SCENARIOS
from tests.support.nodes import Place
from tests.verify.replay.cluster import Cluster
from tests.verify.replay.replay import Replay
from tests.verify.replay.tally import Tally
from tests.verify.replay.walks import Subject, Walk, Walker, subject_of

STORED = Path(__file__).parent / "testdata" / "walks.txt"
# Large ones that show what no small one does.
LARGER = ("create a unique index",)
ALL = {scenario.name: scenario for scenario in SCENARIOS if scenario.is_part_of(Size.DEFAULT)}
SUITE = [name for name, scenario in ALL.items() if scenario.size is Size.SMALL or name in LARGER]
# On PostgreSQL, some walks of these.
SAMPLE = ("create an index, nodes are stopped", "create an index, workers are stopped", "create a unique index")
SAMPLE_WALKS = 2


def read_stored() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in STORED.read_text().splitlines():
        name, _, walk = line.partition(": ")
        found.setdefault(name, []).append(walk)
    return found


def replay_all(place: Place, subject: Subject, walks: Iterator[Walk], tally: Tally) -> None:
    with closing(Cluster(place, subject.nodes)) as cluster:
        for number, walk in enumerate(walks):
            Replay(cluster, subject, walk, number, tally).run()


def stored_walks(subject: Subject) -> Iterator[Walk]:
    walker = Walker(subject)
    return (walker.decode(text) for text in read_stored()[subject.scenario.name])


@pytest.mark.parametrize("name", SUITE)
def test_traces_of_the_model_are_replayed_on_the_engine(
    name: str, tmp_path: Path, tally: Tally, request: pytest.FixtureRequest
):
    """All of them, or every third one in an ordinary run."""
    subject = subject_of(ALL[name])
    every = 1 if request.config.getoption("--exhaustive") else 3
    replay_all(Place(tmp_path), subject, islice(stored_walks(subject), 0, None, every), tally)


@pytest.mark.parametrize("name", SAMPLE)
def test_traces_on_postgresql(name: str, tmp_path: Path, postgres_catalog_url: str, tally: Tally):
    subject = subject_of(ALL[name])
    replay_all(Place(tmp_path, postgres_catalog_url), subject, islice(stored_walks(subject), SAMPLE_WALKS), tally)


def test_every_scenario_has_walks():
    assert set(read_stored()) == set(SUITE)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_the_walks_cover_everything(rewrite: bool):
    lines = []
    for name in SUITE:
        walker = Walker(subject_of(ALL[name]))
        lines += [f"{name}: {walker.encode(walk)}\n" for walk in walker.walks()]
    if rewrite:
        STORED.write_text("".join(lines))
    assert STORED.read_text() == "".join(lines), "run with --exhaustive --rewrite"


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("scenario", ALL.values(), ids=lambda scenario: scenario.name)
def test_traces_by_version(scenario: Scenario, tmp_path: Path, tally: Tally):
    subject = subject_of(scenario)
    replay_all(Place(tmp_path), subject, Walker(subject, fine=True).walks(), tally)
