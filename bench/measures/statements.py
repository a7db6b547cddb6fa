"""What SQL adds to the commit of one row: prepared statements by key, over the same change without SQL."""

from collections.abc import Iterable
from statistics import median

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample
from bench.peers.client import Client, run_subject

# In this order, on the same rows: each is there to be updated and then deleted.
KINDS = ("insert", "update", "delete")


def change(subject: Client, kind: str, first_id: int, count: int) -> tuple[float, float]:
    """Milliseconds of a median change by a statement and without SQL, in turns."""
    answer = subject.request("change_rows", kind=kind, first_id=first_id, count=count)
    return median(answer["by_sql"]) * 1000, median(answer["bare"]) * 1000


def statements(context: Context) -> Iterable[Reading]:
    scale = context.scale
    ways: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder("statements")))
        for kind in KINDS:
            change(subject, kind, 0, scale.commits_warm_up)
        for number in range(1, scale.rounds + 1):
            for kind in KINDS:
                ways[kind].append(change(subject, kind, 2 * scale.commits * number, scale.commits))
        assert subject.request("count")["rows"] == 0, "rows were not deleted"
        subject.request("close")
    for kind, pairs in ways.items():
        by_sql, bare = zip(*pairs, strict=True)
        yield Reading(f"statements.{kind}", "ms", Sample(by_sql), Sample(bare), "peer: the same commit without SQL")


MEASURES = (Measure("statements", statements, bounds_of("statements")),)
