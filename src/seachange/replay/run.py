"""A replay: the history is rehearsed without writers, then run statement by statement under concurrent writes, and
checked.

**Invariant:** the report of a statement is what its client would have seen; nothing is run again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from seachange import errors
from seachange.engine.database.opening import acquire_node, release_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.model.isolation import Isolation
from seachange.replay.assignment import WriterAssignment
from seachange.replay.history import History, Naming, read_history
from seachange.replay.perform import PieceOutcome, Verdict, steps
from seachange.replay.row_rules import Foresight, SchemaShape, dropped, foresee
from seachange.replay.schema_text import Lines, describe_schema, differences
from seachange.replay.tally import WriterTally
from seachange.replay.writer import shape_of
from seachange.replay.writer_pool import WriterPool
from seachange.verify.consistency import check

OnOutcome = Callable[[PieceOutcome], None]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """`pace_ms`: the minimum interval between the transactions of a writer; `pause_ms`: the pause before each
    statement, so that writers use the result of the one before; `autocommit`: a migration is not one transaction."""

    data: Path
    catalog: str | None = None
    writers: int = 2
    seed: int = 1
    pace_ms: int = 20
    pause_ms: int = 20
    expected: Path | None = None
    autocommit: bool = False


@dataclass(slots=True)
class Replay:
    """The result. `differences` is None if no schema was expected."""

    naming: Naming
    left_out: tuple[str, ...]
    outcomes: list[PieceOutcome] = field(default_factory=list)
    tally: WriterTally = field(default_factory=WriterTally)
    anomalies: list[str] = field(default_factory=list)
    differences: list[str] | None = None

    def count(self, verdict: Verdict) -> int:
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    def is_good(self, strict: bool) -> bool:
        refused = strict and self.count(Verdict.REFUSED)
        return not (self.tally.failed or self.anomalies or self.differences or refused)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What is known of a history before it is replayed: the rules that tables will have, and the tables that each piece
    drops."""

    foresight: Foresight
    drops: tuple[tuple[str, ...], ...]

    def dropped_by(self, number: int) -> tuple[str, ...]:
        return self.drops[number] if self.drops else ()


# Without writers no rehearsal is needed.
_NONE = Rehearsal({}, ())


def replay(history: History, options: ReplayOptions, on_outcome: OnOutcome) -> Replay:
    result = Replay(history.naming, history.left_out)

    def note(outcome: PieceOutcome) -> None:
        result.outcomes.append(outcome)
        on_outcome(outcome)

    rehearsal = rehearse(history, options.autocommit) if options.writers else _NONE
    assignments = [
        WriterAssignment(options.data, options.catalog, n, options.seed, options.pace_ms, rehearsal.foresight)
        for n in range(options.writers)
    ]
    with _opened(options.data, options.catalog) as node:
        _check_empty(node, options.data)
        with WriterPool(assignments) as executor:
            _perform(history, node, executor, rehearsal, note, options)
            result.tally = executor.stop()
        result.anomalies = [str(anomaly) for anomaly in check(node)]
        if options.expected is not None:
            result.differences = differences(_schema(node), _expected_schema(read_history(options.expected)))
    return result


def _check_empty(node: Node, data: Path) -> None:
    """Writers write to every table that there is, so the database must be empty."""
    transaction = node.begin(Isolation.REPEATABLE_READ)
    try:
        if transaction.schema.tables():
            raise errors.ReplayNeedsEmptyDatabase(path=data)
    finally:
        transaction.rollback()


def rehearse(history: History, autocommit: bool = False) -> Rehearsal:
    """Runs the history on a temporary database without writers."""
    shapes: list[SchemaShape] = [SchemaShape(())]
    with _scratch() as node:
        for step in steps(history, node, autocommit, _ignore):
            step.perform()
            shapes.append(_shape(step.session) or shapes[-1])
    drops = tuple(dropped(before, after) for before, after in pairwise(shapes))
    return Rehearsal(foresee(shapes), drops)


def _perform(
    history: History,
    node: Node,
    executor: WriterPool,
    rehearsal: Rehearsal,
    on_outcome: OnOutcome,
    options: ReplayOptions,
) -> None:
    left: set[str] = set()
    for step in steps(history, node, options.autocommit, on_outcome):
        # Within a block, other sessions see a dropped table until its end.
        left = {*(left if step.in_block else ()), *rehearsal.dropped_by(step.number)}
        executor.leave(left)
        threading.Event().wait(options.pause_ms / 1_000)
        on_outcome(step.perform())


def _expected_schema(history: History) -> Lines:
    with _scratch() as node:
        for step in steps(history, node, autocommit=True, on_outcome=_ignore):
            step.perform()
        return _schema(node)


def _schema(node: Node) -> Lines:
    transaction = node.begin(Isolation.REPEATABLE_READ)
    try:
        return describe_schema([*transaction.schema.tables(), *transaction.schema.objects()])
    finally:
        transaction.rollback()


def _shape(session: Session) -> SchemaShape | None:
    """The shape that the session sees; None in a failed transaction."""
    return session.in_transaction(shape_of) if session.status is not TransactionStatus.FAILED else None


def _ignore(outcome: PieceOutcome) -> None:
    """Discards the outcome."""


@contextmanager
def _scratch() -> Iterator[Node]:
    with TemporaryDirectory(prefix="seachange-replay-") as folder, _opened(Path(folder), None) as node:
        yield node


@contextmanager
def _opened(data: Path, catalog: str | None) -> Iterator[Node]:
    node = acquire_node(data, catalog)
    try:
        yield node
    finally:
        release_node(node)
