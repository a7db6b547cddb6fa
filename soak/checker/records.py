"""A transaction as its client recorded it, and the part of it that is about lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from soak.checker.model import Append, Level, Operation, Outcome, Read, Statement, Transaction


@dataclass(slots=True)
class Step:
    """One operation; `answer` is None until there is one."""

    operation: dict[str, Any]
    began: int
    ended: int | None = None
    answer: Any = None
    # Rolled back to a savepoint.
    undone: bool = False

    @property
    def kind(self) -> str:
        return str(self.operation["kind"])


@dataclass(slots=True)
class Record:
    name: str
    client: str
    round: int
    level: Level
    began: int
    steps: list[Step] = field(default_factory=list)
    commit_began: int = 0
    ended: int | None = None
    # Of one that is still open: it was not committed as far as this record goes.
    outcome: Outcome = Outcome.ABORTED
    sqlstate: str | None = None
    message: str = ""
    where: str = ""


def to_transactions(records: Iterable[Record]) -> Iterator[Transaction]:
    for record in records:
        yield _to_transaction(record, record.name, record.outcome, undone=False)
        # What was rolled back to a savepoint counts as a transaction that was not committed.
        if any(step.undone and step.kind == "append" for step in record.steps):
            yield _to_transaction(record, f"{record.name}/savepoint", Outcome.ABORTED, undone=True)


def _to_transaction(record: Record, name: str, outcome: Outcome, undone: bool) -> Transaction:
    statements = tuple(_to_statement(step) for step in record.steps if step.undone is undone)
    kept = tuple(statement for statement in statements if statement.operations)
    return Transaction(name, record.level, outcome, kept, record.began, record.commit_began, record.ended)


def _to_statement(step: Step) -> Statement:
    return Statement(tuple(_operations(step)), step.began, step.ended)


def _operations(step: Step) -> Iterator[Operation]:
    operation = step.operation
    match step.kind:
        case "append":
            yield Append(operation["key"], operation["value"])
            if isinstance(step.answer, list):
                yield Read(operation["key"], tuple(step.answer))
        case "read" if step.answer is not None:
            yield from (Read(key, tuple(values)) for key, values in step.answer)
        case _:
            return
