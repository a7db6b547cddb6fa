"""Look-ups of single rows through a secondary index, over a scan of the same table."""

from collections.abc import Iterable

from bench.bounds import bounds_of
from bench.data import sample_ids, write_source
from bench.harness import Context, Measure, Reading, interleave
from bench.measures.points import part
from bench.peers.client import Client, run_subject
from bench.rows import text_key


def rate(subject: Client, how: str, ids: list[int]) -> float:
    seconds: list[float] = subject.request("look_up", key=how, values=[text_key(row_id) for row_id in ids])["seconds"]
    return len(ids) / sum(seconds)


def stored(context: Context) -> Iterable[Reading]:
    """Rows that lie in files only, by an index on text whose order has nothing to do with that of the rows."""
    scale = context.scale
    source = write_source(context.scratch, scale.rows)
    ids = sample_ids(0, scale.rows, scale.lookups)
    with run_subject() as subject:
        subject.request("open", folder=str(context.folder("seeks")), index="k")
        subject.request("load", source=str(source))
        subject.request("compact")
        for how in ("k", "k scanned"):
            rate(subject, how, ids[:1])
        ours, scans = interleave(
            scale.rounds,
            lambda number: rate(subject, "k", part(ids, number, scale.rounds)),
            lambda _: rate(subject, "k scanned", ids[: scale.lookups_peer]),
        )
        subject.request("close")
    yield Reading("seeks.stored", "/s", ours, scans)


MEASURES = (Measure("seeks.stored", stored, bounds_of("seeks.stored")),)
