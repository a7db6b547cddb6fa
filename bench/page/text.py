"""The page itself: a pure function of what was kept."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.page import headline
from bench.page.figures import is_worse, shown, with_spread
from bench.page.topics import TOPICS, Topic, peer_of
from bench.scale import SCALES
from bench.store import Line, Taken

IMAGES = "images"
HEADER = ("reading", "Seachange", "peer", "ratio", "asked for", "")

INTRODUCTION = """# Benchmarks

<!-- written by `python -m bench.page` from docs/benchmarks/*.json: change those, or what writes this -->

`make bench` takes all of these measures, keeps what they give in [docs/benchmarks](benchmarks/) as JSON, and writes
this page from it; `make bench ARGS="--only headline"` takes one topic again and leaves the others. Peers are measured
in the same run, in turns with Seachange, with their default durability, in environments of their own; figures are
medians, with the least and the greatest in parentheses where something was measured more than once. What is slower than
a peer stands [here](#what-is-slower-than-a-peer), and what was missed of what we ask of ourselves is marked. At scale
`full` tables have ten million rows; `small` only shows that everything runs.
"""

HEADLINE = """## The same changes under the same load

{rows} rows, the same on every system; {rate:g} transactions a second are asked of each, one after the other: half of
them reads of one row by its key, the rest inserts, updates and deletes of one row. *Throughput kept* is what succeeded
while the change ran (and for two seconds at least), over what the same system got done before the first change;
latencies count from when a transaction was due. *Carefully* is what handbooks tell to do on a PostgreSQL that is in
use: CONCURRENTLY, NOT VALID and VALIDATE. *In batches* is what pgroll does. Nothing is tuned; where Seachange uses
Spark, its start is in the time. A change that loses against the traffic is tried three times. Whether the rows that
were there were validated was seen by a row that is against the constraint.
"""


def page(taken: Sequence[Taken], images: Sequence[str]) -> str:
    lines = [INTRODUCTION, *machines(taken), ""]
    compared = headline.lines_of(taken)
    if compared:
        lines += [headline_text(taken), *image("headline", "The changes, side by side", images)]
        lines += [*headline.tables(compared), ""]
    lines += [*worse(taken, compared), ""]
    lines += image("ratios", "Seachange over its peers", images)
    for topic in TOPICS:
        lines += section(topic, [each for each in taken if each.topic == topic.name], images)
    lines += absent(taken)
    return "\n".join(lines).rstrip() + "\n"


def headline_text(taken: Iterable[Taken]) -> str:
    scale = SCALES[next(each.scale for each in taken if each.topic == "headline")]
    return HEADLINE.format(rows=f"{scale.rows:,}", rate=scale.rate)


def image(name: str, title: str, images: Sequence[str]) -> list[str]:
    return [f"![{title}]({IMAGES}/{name}.svg)", ""] if name in images else []


def machines(taken: Iterable[Taken]) -> list[str]:
    """Each machine with its versions, once, and what was measured there."""
    found: dict[str, list[str]] = {}
    for each in taken:
        found.setdefault(f"{each.day}: {machine(each.machine)}; scale {each.scale}", []).append(each.topic)
    return [f"- {', '.join(dict.fromkeys(topics))}: {where}." for where, topics in found.items()]


def machine(described: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in described["packages"].items() if number)
    memory = described["memory_bytes"] / 2**30
    return (
        f"{described['system']}, {described['cores']} cores, {memory:.0f} GB of memory, Python {described['python']},"
        f" {versions}, revision {described['revision']}"
    )


def section(topic: Topic, taken: Sequence[Taken], images: Sequence[str]) -> list[str]:
    lines = [line for each in taken for line in each.lines if line.subject is not None]
    if not lines:
        return []
    rows = (cells(line) for line in lines)
    text = [f"## {topic.title}", "", topic.text, "", *image(topic.name, topic.title, images)]
    return [*text, *headline.table(HEADER, rows), ""]


def cells(line: Line) -> tuple[str, ...]:
    named = peer_of(line.name)
    peer = with_spread(line.peer, line.unit)
    return (
        f"`{line.name}`",
        with_spread(line.subject, line.unit),
        f"{named}: {peer}" if named and peer else peer,
        "" if line.ratio is None else shown(line.ratio.median, ""),
        f"{line.bound}{' **missed**' if line.verdict == 'missed' else ''}",
        headline.in_cell(line.note),
    )


def worse(taken: Iterable[Taken], compared: headline.Lines) -> list[str]:
    text = ["## What is slower than a peer", ""]
    for each in taken:
        for line in each.lines:
            peer = peer_of(line.name)
            if peer and is_worse(line):
                ours, theirs = (with_spread(side, line.unit) for side in (line.subject, line.peer))
                text.append(f"- `{line.name}`: {ours}, {peer} {theirs}")
    return [*text, *headline.faster_peers(compared)]


def absent(taken: Iterable[Taken]) -> list[str]:
    """What could not be measured; what a peer lacks stands in its table."""
    missing = [
        f"- `{line.name}`: {headline.in_cell(line.reason)}"
        for each in taken
        if each.topic != "headline"
        for line in each.lines
        if line.subject is None
    ]
    return ["## What could not be measured", "", *missing] if missing else []
