"""The name of a relation, type or sequence as a statement gives it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RelationName:
    """`database` is the session's wherever it is given: no statement reads another one."""

    schema: str | None
    name: str
    database: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"
