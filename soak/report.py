"""The report of a run, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from soak.auditor import SHOWN_MAX, Found
from soak.checker.growth import SAMPLES_MIN, Sample, group_samples


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    catalog: str
    seconds: float
    plant: str | None
    found: list[Found]
    expected: frozenset[str]
    counts: Mapping[str, int]
    faults: Mapping[str, int]
    refusals: Mapping[str, int]
    changes: Mapping[str, int]
    samples: list[Sample] = field(default_factory=list)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def unexpected(self) -> list[Found]:
        return [found for found in self.found if found.violation.anomaly not in self.expected]

    def lines(self) -> Iterator[str]:
        plant = "" if self.plant is None else f", planted {self.plant}"
        yield f"soak: seed {self.seed}, {self.catalog}, {self.seconds:.0f} s{plant}"
        yield _listed("done", self.counts)
        yield _listed("faults", self.faults)
        yield from (f"  no fault {name}: {reason}" for name, reason in self.skipped.items())
        yield _listed("schema changes", self.changes)
        yield _listed("refusals", self.refusals)
        yield from self._growth()
        kinds = Counter(found.violation.anomaly for found in self.found)
        yield _listed("violations", kinds) if kinds else "  no violation"
        for kind in kinds:
            of_kind = [found for found in self.found if found.violation.anomaly == kind]
            for found in of_kind[:SHOWN_MAX]:
                yield from self._show(found)

    def _show(self, found: Found) -> Iterator[str]:
        kind = "KNOWN" if found.violation.anomaly in self.expected else "VIOLATION"
        where = f"seed {self.seed}, round {found.round}, after {found.after_seconds:.0f} s"
        yield f"{kind} {found.violation.anomaly} ({where})"
        yield f"  {found.violation.detail}"
        yield from (f"    {line}" for line in found.history)

    def _growth(self) -> Iterator[str]:
        for (subject, measure), values in sorted(group_samples(self.samples).items()):
            if len(values) < SAMPLES_MIN:
                continue
            quarter = len(values) // 4
            first, last = median(values[:quarter]), median(values[-quarter:])
            ends = f"{_short(first)} at first, {_short(last)} in the end"
            yield f"  {measure} of {subject}: {ends}, {len(values)} samples"


def _listed(what: str, counts: Mapping[str, int]) -> str:
    return f"  {what}: " + (", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none")


def _short(value: float) -> str:
    if value >= 1 << 20:
        return f"{value / (1 << 20):,.0f} MB"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3f}"
