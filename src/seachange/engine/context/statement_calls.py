"""Statements as a session is given them, and as it keeps them: prepared, under a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.sql.parsing.parse import TreeStatement
from seachange.sql.port.result import RowSink
from seachange.sql.run.execute import Prepared, prepare
from seachange.values.coercion import coercer
from seachange.values.types import SqlType

_COMMANDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE")


def prepare_one(text: str, commands: Sequence[str] = _COMMANDS) -> Prepared:
    """The one query or DML statement of a text that stood inside of another statement."""
    (prepared, *more) = prepare(text)
    if more or not isinstance(prepared.parsed, TreeStatement) or prepared.command not in commands:
        raise errors.SyntaxProblem(detail=f"one of {', '.join(commands)} is expected")
    return prepared


@dataclass(frozen=True, slots=True)
class StatementCall:
    """A statement with its arguments. `sink` takes the rows of a query while it runs, if they are many. `following` are
    the statements after it in the same message."""

    prepared: Prepared
    values: Sequence[Any] = ()
    sink: RowSink | None = None
    following: Sequence[Prepared] = ()


@dataclass(frozen=True, slots=True)
class NamedStatement:
    """`is_told`: PREPARE has made it."""

    prepared: Prepared
    types: tuple[SqlType, ...]
    is_told: bool = False

    def convert(self, values: Sequence[Any]) -> list[Any]:
        """The arguments in the types that were declared for them."""
        if self.types and len(self.types) != len(values):
            raise errors.SyntaxProblem(detail=f"{len(self.types)} arguments are expected, {len(values)} were given")
        typed = [coercer(type_)(value) for type_, value in zip(self.types, values, strict=False)]
        return [*typed, *values[len(typed) :]]


class NamedStatements:
    def __init__(self) -> None:
        self._by_name: dict[str, NamedStatement] = {}

    def add(self, name: str, text: str, types: tuple[SqlType, ...]) -> None:
        if name in self._by_name:
            raise errors.DuplicateStatement(name=name)
        self._by_name[name] = NamedStatement(prepare_one(text).with_types(types), types, is_told=True)

    def put(self, name: str, statement: NamedStatement) -> None:
        """One that a client has prepared by other means than text; of any kind."""
        if name in self._by_name:
            raise errors.DuplicateStatement(name=name)
        self._by_name[name] = statement

    def show(self) -> list[tuple[str, str, list[str], bool]]:
        """As pg_prepared_statements lists them."""
        return [(name, s.prepared.text, list(map(str, s.types)), s.is_told) for name, s in self._by_name.items()]

    def has(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str) -> NamedStatement | None:
        return self._by_name.get(name)

    def get(self, name: str) -> NamedStatement:
        if name not in self._by_name:
            raise errors.UndefinedStatement(name=name)
        return self._by_name[name]

    def remove(self, name: str | None) -> None:
        """None removes all."""
        if name is None:
            self._by_name.clear()
        else:
            self.get(name)
            del self._by_name[name]
