"""The results of the traffic, second by second, and the changes during it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A transaction: when it ended, and its latency from its due time."""

    at: float
    ms: float
    kind: str
    retries: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Mark:
    """A change and its time."""

    title: str
    began: float
    ended: float


@dataclass(frozen=True)
class Second:
    at: float
    done: int
    p99_ms: float


@dataclass
class Timeline:
    samples: list[Sample] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def seconds(self, width_s: float = 1.0) -> list[Second]:
        """In bins of equal width; a bin without transactions counts as 0."""
        if not self.samples:
            return []
        first = min(sample.at for sample in self.samples)
        bins: dict[int, list[float]] = {}
        for sample in self.samples:
            bins.setdefault(int((sample.at - first) // width_s), []).append(sample.ms)
        return [
            Second(
                first + number * width_s, round(len(bins.get(number, ())) / width_s), quantile(bins.get(number, ()), 99)
            )
            for number in range(max(bins) + 1)
        ]

    @property
    def failed(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.error is not None]

    @property
    def retried(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.retries and sample.error is None]

    def slowest_ms(self) -> float:
        return max((sample.ms for sample in self.samples), default=0.0)


def quantile(values: Iterable[float], percent: int) -> float:
    """The smallest value that at least that many percent of the values do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The last `width` values, as bars between 0 and the largest of them."""
    shown = values[-width:]
    top = max(shown, default=0.0)
    return "".join(_BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] if top else _BARS[0] for value in shown)
