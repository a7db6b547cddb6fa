"""The auditor: checks snapshots while the run goes on, and each round when all of its transactions have ended."""

from __future__ import annotations

import queue
import random
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from soak.audit import prune, read_lists, read_remains, take_audit
from soak.checker.isolation import check_isolation
from soak.checker.model import Level, Outcome, Read, Statement, Transaction, Violation
from soak.checker.outcomes import check_answers, check_changes, check_outcomes, check_refusals
from soak.checker.records import Record, to_transactions
from soak.checker.rules import check_audit
from soak.checker.shrink import show_history, shrink
from soak.connections import Connection, Opener, Refused
from soak.history import History, now_us
from soak.sampler import Sampler
from soak.schema import ACCOUNTS, BALANCE
from soak.workload import Pace

EVERY_SECONDS = 2.0
# A round is read and checked again after this many attempts that a fault made fail.
ATTEMPTS = 60
# Violations of each kind that are shown at once, with their histories.
SHOWN_MAX = 3
STEP_CHARS = 160
SETTINGS = ("set lock_timeout = '5s'", "set statement_timeout = '60s'")


@dataclass(frozen=True, slots=True)
class Found:
    """A violation, and the smallest history that shows it."""

    violation: Violation
    round: int
    after_seconds: float
    history: tuple[str, ...] = ()


@dataclass(slots=True)
class Auditor:
    opener: Opener
    history: History
    pace: Pace
    seed: int
    faults: tuple[str, ...]
    sampler: Sampler
    ended: threading.Event = field(default_factory=threading.Event)
    dead: queue.SimpleQueue[tuple[str, ...]] = field(default_factory=queue.SimpleQueue)
    found: list[Found] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    # Known anomalies: reported, but they do not end the run.
    expected: frozenset[str] = frozenset()
    _next: int = 0
    _connection: Connection | None = None
    _chance: random.Random = field(default_factory=random.Random)

    def run(self) -> None:
        self._chance = random.Random(f"{self.seed} auditor")
        try:
            while not self.ended.wait(EVERY_SECONDS):
                self._try(self._audit)
                self._check_rounds(self.pace.round)
        except BaseException:  # noqa: BLE001 - whatever it is, the report has it
            self._add([Violation("broken auditor", traceback.format_exc())])

    def finish(self) -> None:
        """Called when all clients have ended: checks every round, including the last."""
        self.ended.set()
        if not self._insist(self._audit):
            self._add([Violation("no answer", "the database cannot be read at the end of the run")])
        rounds = self.pace.round + 1
        self._check_rounds(rounds)
        if self._next < rounds:
            self._add([Violation("no answer", f"round {self._next} and those after it cannot be checked")])

    @property
    def unexpected(self) -> list[Found]:
        return [found for found in self.found if found.violation.anomaly not in self.expected]

    # Snapshots.

    def _audit(self) -> None:
        audit = take_audit(self._open(), self._chance)
        self.counts["snapshots audited"] += 1
        self.counts["index probes"] += len(audit.probes)
        self._add(check_audit(audit))

    def _open(self) -> Connection:
        if self._connection is None or self._connection.is_broken:
            self._connection = self.opener.open(self._chance)
            for setting in SETTINGS:
                self._connection.execute(setting)
        return self._connection

    def _try(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except Refused as problem:
            self.counts["audits refused"] += 1
            self.refusals[f"audit: {problem.sqlstate}"] += 1
            if (problem.sqlstate or "").startswith("XX"):
                self._add([Violation("refused without a reason", f"an audit: {problem.sqlstate}: {problem}")])
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insist(self, work: Callable[[], None]) -> bool:
        pause = threading.Event()
        for _ in range(ATTEMPTS):
            if self._try(work):
                return True
            pause.wait(0.5)
        return False

    # Rounds.

    def _check_rounds(self, limit: int) -> None:
        self._follow()
        while self._next < limit and self.history.is_complete(self._next):
            if self._next not in self.history.rounds:
                self._next += 1
                continue
            if not self._try(self._check_round) and (not self.ended.is_set() or not self._insist(self._check_round)):
                return
            self._next += 1

    def _follow(self) -> None:
        dead: list[str] = []
        while not self.dead.empty():
            dead += self.dead.get()
        self.history.poll()
        self.history.bury(dead)
        events, self.history.events = self.history.events, []
        self._count_changes(events)
        self._add(list(check_changes(events, self.faults)))

    def _check_round(self) -> None:
        number = self._next
        final = self._read_final(number)
        remains = read_remains(self._open(), number)
        records = self.history.take_round(number)
        transactions = [*to_transactions(records), final]
        self._count(records)
        self.sampler.take_round(records)
        self._add(check_outcomes(records, remains), records)
        self._add(list(check_answers(records, ACCOUNTS * BALANCE)), records)
        self._add(list(check_refusals(records, self.faults)), records)
        self._add_cycles(transactions)
        # The indexes contain the rows of this round for the last time.
        self._insist(self._audit)
        self._insist(lambda: prune(self._open(), number))

    def _read_final(self, number: int) -> Transaction:
        began = now_us()
        reads = read_lists(self._open(), number)
        ended = now_us()
        statements = tuple(
            Statement(tuple(Read(key, _values(text)) for key, text in read), began, ended) for read in reads
        )
        return Transaction(
            f"end of round {number}", Level.REPEATABLE_READ, Outcome.COMMITTED, statements, began, ended, ended
        )

    def _count(self, records: Sequence[Record]) -> None:
        self.counts["rounds"] += 1
        for record in records:
            self.counts[f"transactions {record.outcome}"] += 1
            if record.outcome is not Outcome.COMMITTED and record.where not in ("rollback", "killed"):
                self.refusals[f"{record.sqlstate} at {record.level}"] += 1

    def _count_changes(self, events: Collection[dict[str, object]]) -> None:
        for event in events:
            if event["event"] == "changed":
                self.changes["done" if event["sqlstate"] == "00000" else str(event["sqlstate"])] += 1

    # Violations.

    def _add(self, violations: Sequence[Violation], records: Sequence[Record] = ()) -> None:
        by_name = {record.name: record for record in records}
        for violation in violations:
            shown = [_show_record(by_name[name]) for name in violation.transactions if name in by_name]
            self._report(violation, shown)

    def _add_cycles(self, transactions: Sequence[Transaction]) -> None:
        for violation in check_isolation(transactions):
            known = sum(found.violation.anomaly == violation.anomaly for found in self.found)
            # A few examples of each kind are enough.
            small = shrink(transactions, violation) if known < SHOWN_MAX else []
            self._report(violation, show_history(small))

    def _report(self, violation: Violation, shown: Sequence[str]) -> None:
        after_seconds = (now_us() - self.pace.start_us) / 1_000_000
        self.found.append(Found(violation, self._next, after_seconds, tuple(shown)))
        count = sum(found.violation.anomaly == violation.anomaly for found in self.found)
        if count <= SHOWN_MAX:
            kind = "known" if violation.anomaly in self.expected else "VIOLATION"
            print(f"{kind} after {after_seconds:.0f} s: {violation.anomaly}", flush=True)


def _values(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",")) if text else ()


def _show_record(record: Record) -> str:
    steps = "; ".join(
        f"{step.operation} -> {step.answer}"[:STEP_CHARS] + (" (undone)" if step.undone else "")
        for step in record.steps
    )
    return (
        f"{record.name} ({record.level}): {steps}; {record.outcome} {record.sqlstate or ''} {record.message}".rstrip()
    )
