"""The Prometheus text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    value: float
    labels: Labels | None = None
    # The suffix of the metric name, as in histograms.
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: tuple[Sample, ...]


def histogram_samples(
    bounds: Iterable[float], counts: Iterable[int], total: float, labels: Labels
) -> tuple[Sample, ...]:
    """`counts` has one more item than `bounds`."""
    samples, sum_of_counts = [], 0
    for bound, count in zip([*bounds, float("inf")], counts, strict=True):
        sum_of_counts += count
        samples.append(Sample(sum_of_counts, {**labels, "le": _number(bound)}, "_bucket"))
    return (*samples, Sample(total, labels, "_sum"), Sample(sum_of_counts, labels, "_count"))


def write_families(families: Iterable[MetricFamily]) -> str:
    """
    >>> print(write_families([MetricFamily("up", "gauge", "Alive.", (Sample(1, {"node": 'a"b'}),))]), end="")
    # HELP up Alive.
    # TYPE up gauge
    up{node="a\\"b"} 1
    """
    lines: list[str] = []
    for family in families:
        lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
        lines += (f"{family.name}{s.suffix}{_labels(s.labels)} {_number(s.value)}" for s in family.samples)
    return "\n".join([*lines, ""])


def _labels(labels: Labels | None) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    """
    >>> _number(3), _number(0.25), _number(float("inf"))
    ('3', '0.25', '+Inf')
    """
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
