"""The recent load of a node, second by second: statements, their duration, failures, conflicts, and its own work.

**Invariant:** a bounded number of samples is kept, and taking one does not depend on how many requests look at them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seachange.engine.context.meters import BOUNDS_US, Meters

SAMPLES_MAX = 600
_US = 1_000_000
_P99 = 0.99


@dataclass(frozen=True, slots=True)
class _Counts:
    """Totals since the start of the node. `below` counts statements by the bounds of their duration."""

    at_us: int
    below: tuple[int, ...]
    failed: int
    conflicts: int
    # Rows that jobs have read, and compacted indexes.
    job_rows: int
    compactions: int


class LoadHistory:
    """`compactions` gives how many indexes the node has compacted."""

    def __init__(self, meters: Meters, compactions: Callable[[], int]) -> None:
        self._meters = meters
        self._compactions = compactions
        self._last: _Counts | None = None
        self._samples: deque[Mapping[str, Any]] = deque(maxlen=SAMPLES_MAX)

    def sample(self, wall_us: int) -> None:
        """To be called about once a second."""
        counts = self._read(wall_us)
        if self._last is not None and counts.at_us > self._last.at_us:
            self._samples.append(_rates(self._last, counts))
        self._last = counts

    def samples(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self._samples)

    def _read(self, wall_us: int) -> _Counts:
        readings = [histogram.read().counts for histogram in list(self._meters.statements.values())]
        below = tuple(map(sum, zip(*readings, strict=True))) if readings else (0,) * (len(BOUNDS_US) + 1)
        refused = self._meters.refusals.read()
        conflicts = sum(count for sqlstate, count in refused.items() if sqlstate.startswith("40"))
        work = self._meters.pipeline_rows.total, self._compactions()
        return _Counts(wall_us, below, self._meters.failures.total, conflicts, *work)


def _rates(before: _Counts, after: _Counts) -> Mapping[str, Any]:
    seconds = (after.at_us - before.at_us) / _US
    counts = [new - old for new, old in zip(after.below, before.below, strict=True)]
    return {
        "at": after.at_us // 1_000,
        "statements": round(sum(counts) / seconds, 1),
        "p99_ms": percentile_ms(counts, _P99),
        "failed": round((after.failed - before.failed) / seconds, 1),
        "conflicts": round((after.conflicts - before.conflicts) / seconds, 1),
        "job_rows": round((after.job_rows - before.job_rows) / seconds),
        "compactions": round((after.compactions - before.compactions) / seconds, 1),
    }


def percentile_ms(counts: Iterable[int], share: float) -> float | None:
    """The upper bound of the duration of that share of the statements; None if there were none.

    >>> percentile_ms([98, 1, 1], 0.99), percentile_ms([0, 0], 0.99)
    (0.25, None)
    """
    counted = list(counts)
    total = sum(counted)
    if not total:
        return None
    seen = 0
    for count, bound_us in zip(counted, (*BOUNDS_US, BOUNDS_US[-1]), strict=False):
        seen += count
        if seen >= share * total:
            return bound_us / 1_000
    return BOUNDS_US[-1] / 1_000
