"""The outcomes of foreground transactions: counted per writer, then added up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

# A transaction that violates a constraint is rejected correctly: neither a success nor a failure of a schema change.
_CONSTRAINT_CLASS = "23"
_EXAMPLES_MAX = 5


@dataclass(slots=True)
class WriterTally:
    """`refused` are transactions that violated a constraint, `failed` all others that failed, by their SQLSTATE;
    `examples` are the first errors. Times are those of committed transactions."""

    done: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)

    def succeed(self, time_us: int, actions: Iterable[str]) -> None:
        self.done += 1
        self.times_us.append(time_us)
        self.actions.update(actions)

    def fail(self, sqlstate: str, message: str, statement: str) -> None:
        kind = self.refused if sqlstate.startswith(_CONSTRAINT_CLASS) else self.failed
        kind[sqlstate] += 1
        if kind[sqlstate] <= _EXAMPLES_MAX:
            self.examples.append(f"{sqlstate}: {message} -- {statement}")

    def add(self, other: WriterTally) -> None:
        self.done += other.done
        self.refused += other.refused
        self.failed += other.failed
        self.actions += other.actions
        self.examples += other.examples
        self.times_us += other.times_us

    def percentile_ms(self, percent: int) -> float:
        if not self.times_us:
            return 0.0
        ordered = sorted(self.times_us)
        return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] / 1_000

    def examples_of(self, counts: Counter[str]) -> list[str]:
        return [example for example in self.examples if example.partition(":")[0] in counts]

    def to_json(self) -> str:
        return json.dumps([self.done, self.refused, self.failed, self.actions, self.examples, self.times_us])

    @classmethod
    def from_json(cls, text: str) -> WriterTally:
        done, refused, failed, actions, examples, times_us = json.loads(text)
        return cls(done, Counter(refused), Counter(failed), Counter(actions), examples, times_us)
