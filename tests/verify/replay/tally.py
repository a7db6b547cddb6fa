"""What was replayed, and what was not, by reason."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.verify.replay.differences import DIFFERENCES, Difference


@dataclass(slots=True)
class Tally:
    walks: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    # Steps that stand for nothing on the engine, and walks that ended early.
    left_out: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.steps.items()))
        lines = [f"{self.walks} traces of the model, {self.steps.total()} steps: {kinds}"]
        for what, counts in (("steps left out", self.left_out), ("traces cut short", self.cut)):
            lines += [f"{count} {what}: {name} ({_why(name)})" for name, count in sorted(counts.items())]
        return lines


def _why(name: str) -> str:
    found: Difference | None = next((d for d in DIFFERENCES if d.name == name), None)
    return found.why if found is not None else "?"


def add_up(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.walks += tally.walks
        for counts in ("steps", "left_out", "cut"):
            getattr(total, counts).update(getattr(tally, counts))
    return total
