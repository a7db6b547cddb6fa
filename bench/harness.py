"""What a measurement is: values, their medians and spread, and the alternation of subject and peer.

Both sides are measured in one run, in turns, so that a ratio never compares two
moods of the machine.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from bench.scale import Scale


class Unavailable(Exception):
    """Something that a measure needs is missing on this machine: reported, not fatal."""


class Relation(StrEnum):
    AT_LEAST = ">="
    AT_MOST = "<="


class Verdict(StrEnum):
    OK = "ok"
    MISSED = "missed"
    UNBOUNDED = "-"
    UNAVAILABLE = "unavailable"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the ratio of subject to peer, or on the subject's own value if there is no peer."""

    reading: str
    relation: Relation
    limit: float

    def holds(self, value: float) -> bool:
        match self.relation:
            case Relation.AT_LEAST:
                return value >= self.limit
            case Relation.AT_MOST:
                return value <= self.limit


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one side, one per round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        return (min(self.values), max(self.values))


@dataclass(frozen=True, slots=True)
class Reading:
    """One line of the table; `name` is that of its bound, if it has one."""

    name: str
    unit: str
    subject: Sample
    peer: Sample | None = None
    note: str = ""
    # What else was seen, by name, as JSON has it.
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> Sample | None:
        """Subject over peer, round by round."""
        if self.peer is None:
            return None
        pairs = zip(self.subject.values, self.peer.values, strict=True)
        return Sample(tuple(ours / theirs for ours, theirs in pairs))

    @property
    def judged(self) -> float:
        return (self.ratio or self.subject).median


@dataclass(frozen=True, slots=True)
class Absence:
    """A line of the table without a measurement: the peer lacks the feature, or failed."""

    name: str
    reason: str
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What a measure may use: the scale, and a folder of its own."""

    scale: Scale
    scratch: Path

    def folder(self, name: str) -> Path:
        """A fresh folder; the same name twice is an error."""
        path = self.scratch / name
        path.mkdir(parents=True)
        return path


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    function: Callable[[Context], Iterable[Reading | Absence]]
    bounds: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    verdict: Verdict
    bound: Bound | None = None
    reading: Reading | None = None
    reason: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)


def interleave(rounds: int, subject: Callable[[int], float], peer: Callable[[int], float]) -> tuple[Sample, Sample]:
    """Measures both sides alternately; each call gets the number of its round."""
    pairs = [(subject(number), peer(number)) for number in range(rounds)]
    ours, theirs = zip(*pairs, strict=True)
    return Sample(ours), Sample(theirs)


def judge(reading: Reading | Absence, bound: Bound | None) -> Result:
    if isinstance(reading, Absence):
        return Result(reading.name, Verdict.UNAVAILABLE, bound, reason=reading.reason, facts=reading.facts)
    if bound is None:
        return Result(reading.name, Verdict.UNBOUNDED, None, reading, facts=reading.facts)
    verdict = Verdict.OK if bound.holds(reading.judged) else Verdict.MISSED
    return Result(reading.name, verdict, bound, reading, facts=reading.facts)


def run_measure(measure: Measure, context: Context) -> list[Result]:
    """Compares every reading with its bound; a bound without a reading is an error in the measure."""
    bounds = {bound.reading: bound for bound in measure.bounds}
    readings = list(measure.function(context))
    missing = bounds.keys() - {reading.name for reading in readings}
    assert not missing, f"{measure.name} gave no reading for {sorted(missing)}"
    return [judge(reading, bounds.get(reading.name)) for reading in readings]
