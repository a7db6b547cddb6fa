"""The picture: throughput and p99 over time, with the changes shaded, for both systems side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from demo.timeline import Timeline

_BIN_S = 0.5
_SHADES = colormaps["tab10"]


def draw(path: Path, timelines: Sequence[tuple[str, Timeline]]) -> None:
    # It goes to a file: a screen need not be there.
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(2, len(timelines), figsize=(7.5 * len(timelines), 6.5), sharex="col", squeeze=False)
    top = max((second.done for _, timeline in timelines for second in timeline.seconds(_BIN_S)), default=1)
    for column, (title, timeline) in enumerate(timelines):
        _draw_one(axes[0][column], axes[1][column], title, timeline)
        axes[0][column].set_ylim(0, top * 1.1)
    low = min(axis.get_ylim()[0] for axis in axes[1])
    high = max(axis.get_ylim()[1] for axis in axes[1])
    for axis in axes[1]:
        axis.set_ylim(low, high)
    titles = [mark.title for mark in timelines[0][1].marks]
    handles = [Rectangle((0, 0), 1, 1, color=_SHADES(number), alpha=0.35) for number in range(len(titles))]
    figure.legend(handles, titles, loc="lower center", ncol=4, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_one(rate: Any, latency: Any, title: str, timeline: Timeline) -> None:
    seconds = timeline.seconds(_BIN_S)[:-1]
    if not seconds:
        return
    start = seconds[0].at
    moments = [second.at - start for second in seconds]
    rate.plot(moments, [second.done for second in seconds], color="black", linewidth=1)
    rate.set_title(title)
    rate.set_ylabel("transactions / s")
    # Where nothing was done there is no latency: the line is broken.
    p99 = [second.p99_ms if second.done else math.nan for second in seconds]
    latency.plot(moments, p99, color="black", linewidth=1)
    latency.set_yscale("log")
    latency.set_ylabel("p99 latency, ms")
    latency.set_xlabel("seconds")
    for number, mark in enumerate(timeline.marks):
        for axis in (rate, latency):
            # What takes no time is seen all the same.
            axis.axvspan(
                mark.began - start, max(mark.ended, mark.began + 0.1) - start, color=_SHADES(number), alpha=0.35
            )
