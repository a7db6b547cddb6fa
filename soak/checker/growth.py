"""Growth: after the warm-up, memory, threads, files and latency stay within bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from soak.checker.model import Violation

# A shorter series says nothing.
SAMPLES_MIN = 12
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of one subject: a process since its start, or the data folder."""

    subject: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The median of the last quarter is at most `factor` times that of the first quarter, plus `slack`."""

    factor: float
    slack: float


BOUNDS = {
    "memory": Bound(1.5, 150 * MEGABYTE),
    "threads": Bound(1.5, 30),
    "open files": Bound(1.5, 60),
    "files": Bound(2.0, 400),
    "bytes": Bound(2.0, 100 * MEGABYTE),
    "latency": Bound(4.0, 2.0),
}


def check_growth(samples: Sequence[Sample]) -> Iterator[Violation]:
    """The samples of each subject are in time order, without its warm-up."""
    for (subject, measure), values in group_samples(samples).items():
        bound = BOUNDS[measure]
        if len(values) >= SAMPLES_MIN:
            quarter = len(values) // 4
            first, last = median(values[:quarter]), median(values[-quarter:])
            if last > bound.factor * first + bound.slack:
                yield Violation("growth", f"{measure} of {subject} grew from {first:,.2f} to {last:,.2f}")


def group_samples(samples: Sequence[Sample]) -> dict[tuple[str, str], list[float]]:
    series: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in samples:
        series[sample.subject, sample.measure].append(sample.value)
    return dict(series)
