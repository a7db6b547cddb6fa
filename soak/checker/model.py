"""What a history says, as values: transactions of list appends and reads, and the violations that a check finds.

Times are microseconds of one clock that all processes of the machine share. A `began` of 0 is before everything, an
`ended` of None is after everything: such an event takes part in no real-time order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    READ_COMMITTED = "read committed"
    REPEATABLE_READ = "repeatable read"
    SERIALIZABLE = "serializable"


class Outcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    # COMMIT was sent, and no answer came.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Append:
    key: int
    value: int


@dataclass(frozen=True, slots=True)
class Read:
    key: int
    values: tuple[int, ...]


Operation = Append | Read


@dataclass(frozen=True, slots=True)
class Statement:
    operations: tuple[Operation, ...]
    began: int = 0
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    name: str
    level: Level
    outcome: Outcome
    statements: tuple[Statement, ...]
    began: int = 0
    # When COMMIT was sent; for a statement in autocommit mode, when that was.
    commit_began: int = 0
    ended: int | None = None

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(operation for statement in self.statements for operation in statement.operations)

    @property
    def appends(self) -> tuple[Append, ...]:
        return tuple(operation for operation in self.operations if isinstance(operation, Append))

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(operation for operation in self.operations if isinstance(operation, Read))


@dataclass(frozen=True, slots=True)
class Violation:
    anomaly: str
    detail: str
    # The transactions that show it, if it concerns transactions.
    transactions: tuple[str, ...] = field(default=())
