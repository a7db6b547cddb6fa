"""The page itself: a pure function of the kept results."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.page import headline
from bench.page.figures import is_worse, shown, with_spread
from bench.page.topics import TOPICS, Topic, peer_of
from bench.scale import SCALES
from bench.store import Line, Taken

IMAGES = "images"
HEADER = ("reading", "Seachange", "peer", "ratio", "target", "")

INTRODUCTION = """# Benchmarks

<!-- written by `python -m bench.page` from docs/benchmarks/*.json: change those, or what writes this -->

`make bench` runs all measurements, stores the results in [docs/benchmarks](benchmarks/) as JSON, and generates this
page from them; `make bench ARGS="--only headline"` repeats one topic and keeps the others. Peers are measured in the
same run, alternating with Seachange, with their default durability, in separate environments. Figures are medians,
with minimum and maximum in parentheses if something was measured more than once. One list has everything that is
[slower than a peer](#what-is-slower-than-a-peer), and missed targets are marked. At scale `full` tables have ten
million rows; `small` is a smoke test.
"""

HEADLINE = """## The same changes under the same load

{rows} rows, the same on every system, which gets {rate:g} transactions per second, one after the other: half of them
read one row by key, the rest insert, update and delete one row. *Throughput retained* is the throughput during the
change (for at least two seconds) relative to that of the same system before the first change; latencies count from
when a transaction was due. *Careful* is the recommended practice on a PostgreSQL in production: CONCURRENTLY, NOT
VALID and VALIDATE. *Batched* is what pgroll does. Nothing is tuned; if Seachange uses Spark, the time includes its
start. A change that loses against the load is tried three times. A row that violates the constraint shows whether
existing rows were validated.
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
    """What could not be measured; what a peer lacks is in its table."""
    missing = [
        f"- `{line.name}`: {headline.in_cell(line.reason)}"
        for each in taken
        if each.topic != "headline"
        for line in each.lines
        if line.subject is None
    ]
    return ["## What could not be measured", "", *missing] if missing else []
