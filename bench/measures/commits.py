"""Durable single-row commits of one session: compared with the peers, and with earlier commits of the same table."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.peers.client import Client, run_peer, run_subject

FIRST_COMMITS = 100


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer, how it is opened, and what its commits guarantee."""

    name: str
    peer: str
    options: Mapping[str, str]
    durability: str


CONTENDERS = (
    Contender("commits.deltalake", "deltalake", {}, "the peer syncs nothing"),
    Contender("commits.pyiceberg", "pyiceberg", {}, "the peer syncs its catalog only"),
    Contender("commits.ducklake_duckdb", "ducklake", {"catalog": "duckdb"}, "the peer is durable"),
    Contender("commits.ducklake_sqlite", "ducklake", {"catalog": "sqlite"}, "the peer is durable"),
)


def commits_per_second(client: Client, folder: Path, count: int, options: Mapping[str, str]) -> float:
    """The rate of the first commits of a fresh table in a fresh folder."""
    folder.mkdir(parents=True)
    client.request("open", folder=str(folder), **options)
    seconds: list[float] = client.request("commit", first_id=0, count=count)["seconds"]
    assert client.request("count")["rows"] == count, f"{client.name} lost commits"
    client.request("close")
    return count / sum(seconds)


def against(contender: Contender, context: Context) -> Iterable[Reading]:
    scale = context.scale
    with ExitStack() as stack:
        peer = stack.enter_context(run_peer(contender.peer))
        subject = stack.enter_context(run_subject())
        sides: tuple[tuple[Client, Mapping[str, str]], ...]
        sides = ((subject, {}), (peer, contender.options))

        def rate(side: int, round_number: int, count: int = scale.commits) -> float:
            client, options = sides[side]
            folder = context.scratch / client.name / str(round_number)
            return commits_per_second(client, folder, count, options)

        # Code is loaded and caches are filled before anything counts.
        for side in (0, 1):
            rate(side, -1, scale.commits_warm_up)
        ours, theirs = interleave(scale.rounds, partial(rate, 0), partial(rate, 1))
    yield Reading(contender.name, "/s", ours, theirs, contender.durability)


def against_own_past(context: Context) -> Iterable[Reading]:
    """Commits after many others, over the first hundred of the same table."""
    rounds = [first_and_later(context, number) for number in range(context.scale.rounds)]
    first, later = zip(*rounds, strict=True)
    note = f"peer: own first {FIRST_COMMITS} commits; ours: after {context.scale.commits_earlier}"
    yield Reading("commits.later", "ms", Sample(later), Sample(first), note)


def first_and_later(context: Context, round_number: int) -> tuple[float, float]:
    """Milliseconds of a median commit, early and late in the lifetime of one table."""
    earlier = context.scale.commits_earlier
    folder = context.folder(f"later/{round_number}")
    with run_subject() as subject:
        subject.request("open", folder=str(folder))
        first = subject.request("commit", first_id=0, count=FIRST_COMMITS)["seconds"]
        subject.request("commit", first_id=FIRST_COMMITS, count=earlier - FIRST_COMMITS)
        later = subject.request("commit", first_id=earlier, count=FIRST_COMMITS)["seconds"]
        subject.request("close")
    return median(first) * 1000, median(later) * 1000


MEASURES = (
    *(Measure(contender.name, partial(against, contender), bounds_of(contender.name)) for contender in CONTENDERS),
    Measure("commits.later", against_own_past, bounds_of("commits.later")),
)
