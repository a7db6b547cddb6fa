"""Stored results, a JSON file for each topic; a measure that is repeated replaces its own lines only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.harness import Result
from bench.machine import describe
from bench.peers.environment import ROOT
from bench.report import result_json
from bench.scale import Scale

KEPT = ROOT / "docs" / "benchmarks"


@dataclass(frozen=True, slots=True)
class Quantity:
    median: float
    spread: tuple[float, float]
    repetitions: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, as stored."""

    name: str
    verdict: str
    reason: str
    note: str
    unit: str
    subject: Quantity | None
    peer: Quantity | None
    ratio: Quantity | None
    # "<= 1.5", or empty.
    bound: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """One measure: its date, scale and machine, and its results."""

    measure: str
    day: str
    scale: str
    machine: dict[str, Any]
    lines: tuple[Line, ...]

    @property
    def topic(self) -> str:
        return topic_of(self.measure)


def topic_of(measure: str) -> str:
    return measure.partition(".")[0]


def keep(folder: Path, measure: str, scale: Scale, results: Sequence[Result]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{topic_of(measure)}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[measure] = {
        "day": datetime.now(UTC).date().isoformat(),
        "scale": scale.name,
        "machine": describe(),
        "results": [result_json(result) for result in results],
    }
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def read_all(folder: Path) -> tuple[Taken, ...]:
    """All stored results, by the names of measures."""
    found = (
        Taken(measure, kept["day"], kept["scale"], kept["machine"], tuple(map(line_of, kept["results"])))
        for path in sorted(folder.glob("*.json"))
        for measure, kept in json.loads(path.read_text()).items()
    )
    return tuple(sorted(found, key=lambda taken: taken.measure))


def line_of(kept: dict[str, Any]) -> Line:
    bound = kept["bound"]
    return Line(
        name=kept["name"],
        verdict=kept["result"],
        reason=kept["reason"],
        note=kept.get("note", ""),
        unit=kept.get("unit", ""),
        subject=quantity_of(kept.get("subject")),
        peer=quantity_of(kept.get("peer")),
        ratio=quantity_of(kept.get("ratio")),
        bound="" if bound is None else f"{bound['relation']} {bound['limit']:,.3g}",
        facts=kept["facts"],
    )


def quantity_of(kept: dict[str, Any] | None) -> Quantity | None:
    if kept is None:
        return None
    low, high = kept["spread"]
    return Quantity(kept["median"], (low, high), kept["repetitions"])
