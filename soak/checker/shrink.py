"""Shrinking: the smallest part of a history that still shows an anomaly, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from soak.checker.isolation import check_isolation
from soak.checker.model import Append, Operation, Outcome, Read, Statement, Transaction, Violation

Check = Callable[[Sequence[Transaction]], Sequence[Violation]]


def project(history: Sequence[Transaction], names: Collection[str]) -> list[Transaction]:
    """These transactions alone, as if there had been no others: lists lose what others appended."""
    kept = [t for t in history if t.name in names]
    values = {(a.key, a.value) for t in kept for a in t.appends}
    # A value that was never appended stays: it may be the anomaly.
    foreign = {(a.key, a.value) for t in history for a in t.appends} - values
    return _forget(kept, foreign)


def _forget(history: Sequence[Transaction], foreign: Collection[tuple[int, int]]) -> list[Transaction]:
    """Lists lose these values."""
    return [replace(t, statements=tuple(_project_statement(s, foreign) for s in t.statements)) for t in history]


def _project_statement(statement: Statement, foreign: Collection[tuple[int, int]]) -> Statement:
    return replace(statement, operations=tuple(_project_operation(o, foreign) for o in statement.operations))


def _project_operation(operation: Operation, foreign: Collection[tuple[int, int]]) -> Operation:
    if isinstance(operation, Append):
        return operation
    return Read(operation.key, tuple(v for v in operation.values if (operation.key, v) not in foreign))


def shrink(history: Sequence[Transaction], violation: Violation, check: Check = check_isolation) -> list[Transaction]:
    """A part of the history that shows the same anomaly, and of which nothing more can be left out."""

    def shows(candidate: Sequence[Transaction]) -> bool:
        return any(found.anomaly == violation.anomaly for found in check(candidate))

    part = project(history, set(violation.transactions))
    if not shows(part):
        part = _grow(history, violation, shows)
    return _drop_operations(_drop_transactions(part, shows), shows)


def _grow(
    history: Sequence[Transaction], violation: Violation, shows: Callable[[Sequence[Transaction]], bool]
) -> list[Transaction]:
    """Adds the readers that determine the order of the lists."""
    keys = {o.key for t in history if t.name in violation.transactions for o in t.operations}
    names = {t.name for t in history if any(o.key in keys for o in t.operations)}
    part = project(history, names)
    return part if shows(part) else list(history)


def _drop_transactions(history: list[Transaction], shows: Callable[[Sequence[Transaction]], bool]) -> list[Transaction]:
    """Halves first, then quarters, and so on to single transactions."""
    size = max(1, len(history) // 2)
    while True:
        start, dropped = 0, False
        while start < len(history):
            rest = {t.name for t in [*history[:start], *history[start + size :]]}
            candidate = project(history, rest)
            if rest and shows(candidate):
                history, dropped = candidate, True
            else:
                start += size
        if size == 1 and not dropped:
            return history
        size = max(1, size // 2)


def _drop_operations(history: list[Transaction], shows: Callable[[Sequence[Transaction]], bool]) -> list[Transaction]:
    """Removes single appends and reads, from the last to the first."""
    for number in range(len(history)):
        for place in reversed(range(len(history[number].operations))):
            candidate = [*history[:number], _without(history[number], place), *history[number + 1 :]]
            dropped = history[number].operations[place]
            if isinstance(dropped, Append):
                candidate = _forget(candidate, {(dropped.key, dropped.value)})
            if shows(candidate):
                history = candidate
    return history


def _without(transaction: Transaction, place: int) -> Transaction:
    """Without its operation of that number, and without a statement that has none left."""
    statements: list[Statement] = []
    for statement in transaction.statements:
        count = len(statement.operations)
        if 0 <= place < count:
            left = (*statement.operations[:place], *statement.operations[place + 1 :])
            statement = replace(statement, operations=left)
        place -= count
        if statement.operations:
            statements.append(statement)
    return replace(transaction, statements=tuple(statements))


def show_history(history: Sequence[Transaction]) -> list[str]:
    """A line for each transaction, in the order of their beginnings, with times since the first in milliseconds."""
    start = min((t.began for t in history), default=0)
    return [_show_transaction(t, start) for t in sorted(history, key=lambda t: (t.began, t.name))]


def _show_transaction(transaction: Transaction, start: int) -> str:
    statements = "; ".join(_show_statement(s, start) for s in transaction.statements)
    end = "" if transaction.ended is None else f" at {_milliseconds(transaction.ended, start)}"
    sent = f", COMMIT sent at {_milliseconds(transaction.commit_began, start)}"
    sent = "" if transaction.outcome is Outcome.ABORTED else sent
    began = _milliseconds(transaction.began, start)
    return f"{transaction.name} ({transaction.level}, began {began}): {statements}{sent}, {transaction.outcome}{end}"


def _show_statement(statement: Statement, start: int) -> str:
    shown = ", ".join(
        f"append {o.value} to {o.key}" if isinstance(o, Append) else f"read {o.key} = {list(o.values)}"
        for o in statement.operations
    )
    end = "" if statement.ended is None else f"-{_milliseconds(statement.ended, start)}"
    return f"[{_milliseconds(statement.began, start)}{end}] {shown}"


def _milliseconds(time: int, start: int) -> str:
    return f"{(time - start) / 1000:.1f}"
