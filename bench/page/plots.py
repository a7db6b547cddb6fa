"""The pictures of the page, as SVG that is the same for the same figures."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.headline.changes import CHANGES
from bench.page.figures import MORE_IS_BETTER, percent_kept
from bench.page.headline import lines_of
from bench.page.topics import SYSTEMS, peer_of
from bench.store import Line, Taken

COLOURS = dict(
    zip(SYSTEMS, ("#0b6e4f", "#3a5a9b", "#6f8fc9", "#a9bde3", "#d08c2f", "#9a5b3c"), strict=True),
)
OURS, THEIRS = COLOURS["seachange"], COLOURS["postgresql_plain"]

Figure = Any


def draw_headline(taken: Sequence[Taken]) -> Figure | None:
    """Time, throughput kept and p99 of each change on each system."""
    lines = lines_of(taken)
    if not lines:
        return None
    panels: tuple[tuple[str, Callable[[Line], float], str], ...] = (
        ("time of the change, s", seconds, "log"),
        ("throughput kept, %", lambda line: percent_kept(line.facts), "linear"),
        ("p99 of the traffic meanwhile, ms", lambda line: max(line.facts["p99_ms"], 0.1), "log"),
    )
    figure, axes = plt.subplots(1, len(panels), figsize=(14, 8), sharey=True)
    height = 0.8 / len(SYSTEMS)
    for axis, (title, value_of, scale) in zip(axes, panels, strict=True):
        for number, (name, label) in enumerate(SYSTEMS.items()):
            found = {
                place: line
                for place, change in enumerate(CHANGES)
                if (line := lines.get((change.name, name))) is not None and line.subject is not None
            }
            places = [place + (number - (len(SYSTEMS) - 1) / 2) * height for place in found]
            axis.barh(places, [value_of(line) for line in found.values()], height, label=label, color=COLOURS[name])
        axis.set_xscale(scale)
        axis.set_title(title, fontsize=11)
        axis.grid(axis="x", alpha=0.3)
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(CHANGES)), [change.title for change in CHANGES])
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncol=len(SYSTEMS), frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure


def seconds(line: Line) -> float:
    assert line.subject is not None
    return max(line.subject.median, 0.001)


def draw_ratios(taken: Sequence[Taken]) -> Figure | None:
    """How many times as fast as its peer, of every reading that has one, with the spread over the rounds."""
    lines = [line for each in taken for line in each.lines if line.ratio is not None and peer_of(line.name)]
    if not lines:
        return None
    figure, axis = plt.subplots(figsize=(10, 0.9 + 0.27 * len(lines)))
    for place, line in enumerate(lines):
        assert line.ratio is not None
        ratios = (line.ratio.median, *line.ratio.spread)
        times = [ratio if line.unit in MORE_IS_BETTER else 1 / ratio for ratio in ratios if ratio > 0]
        if not times:
            # No time is left to compare of what a fixed part was taken from.
            continue
        colour = OURS if times[0] >= 1 else COLOURS["deltalake"]
        axis.plot([min(times), max(times)], [place, place], color=colour, linewidth=2)
        axis.plot(times[:1], [place], "o", color=colour)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yticks(range(len(lines)), [f"{line.name}, {peer_of(line.name)}" for line in lines], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("times as fast as the peer; left of the line: slower")
    axis.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    return figure


def draw_evolution(taken: Sequence[Taken]) -> Figure | None:
    """What is kept of the throughput while one change follows the other, by the kind of work."""
    lines = [line for each in taken if each.topic == "evolution" for line in each.lines if line.unit == "%"]
    if not lines:
        return None
    figure, axis = plt.subplots(figsize=(8, 3.6))
    for offset, (label, colour) in ((-0.2, ("Seachange", OURS)), (0.2, ("PostgreSQL", THEIRS))):
        sides = [line.subject if label == "Seachange" else line.peer for line in lines]
        heights = [0.0 if side is None else side.median for side in sides]
        places = [place + offset for place in range(len(lines))]
        axis.bar(places, heights, 0.38, label=label, color=colour)
    axis.set_xticks(range(len(lines)), [line.name.split(".")[1].replace("_", "-") for line in lines])
    axis.set_ylabel("throughput kept, %")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.legend(frameon=False)
    figure.tight_layout()
    return figure


def draw_estimates(taken: Sequence[Taken]) -> Figure | None:
    """What was expected over what it took: a point for each statement."""
    lines = [line for each in taken if each.topic == "estimates" for line in each.lines if line.facts]
    if not lines:
        return None
    figure, axis = plt.subplots(figsize=(8, 0.9 + 0.35 * len(lines)))
    for place, line in enumerate(lines):
        ratios = sorted(line.facts.values())
        # Equal ones beside each other.
        heights = [place + 0.3 * (number % 7 - 3) / 3 for number in range(len(ratios))]
        axis.plot(ratios, heights, "o", color=OURS, markersize=3, alpha=0.6)
    for limit in (0.5, 1, 2):
        axis.axvline(limit, color="black", linewidth=0.8 if limit == 1 else 0.4)
    axis.set_xscale("log")
    axis.set_yticks(range(len(lines)), [line.name.partition(".")[2].replace(".", ", ") for line in lines], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("expected over taken; between the outer lines: within twice")
    figure.tight_layout()
    return figure


DRAWN: dict[str, Callable[[Sequence[Taken]], Figure | None]] = {
    "headline": draw_headline,
    "ratios": draw_ratios,
    "evolution": draw_evolution,
    "estimates": draw_estimates,
}


def fingerprint(taken: Sequence[Taken]) -> str:
    """Of all that a picture may show: in the picture, it tells whether it was drawn of these figures."""
    lines = [asdict(line) for each in taken for line in each.lines]
    return hashlib.sha256(json.dumps(lines, sort_keys=True).encode()).hexdigest()[:16]


def draw_all(taken: Sequence[Taken], folder: Path) -> list[str]:
    """Draws what there is to draw; the names of the pictures."""
    plt.switch_backend("Agg")
    mpl.rcParams["svg.hashsalt"] = "seachange"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in DRAWN.items():
        figure = draw(taken)
        if figure is None:
            continue
        metadata = {"Date": None, "Description": fingerprint(taken)}
        figure.savefig(folder / f"{name}.svg", metadata=metadata)
        plt.close(figure)
        drawn.append(name)
    return drawn
