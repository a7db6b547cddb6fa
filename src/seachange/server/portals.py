"""The prepared statements and portals of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.context.statement_calls import NamedStatement, NamedStatements
from seachange.engine.session.cursors import OpenCursor
from seachange.server.delivery import RowForm
from seachange.sql.port.result import Result, ResultColumn
from seachange.sql.run.execute import Prepared
from seachange.values.types import SqlType


@dataclass(slots=True)
class Statement:
    """`named` None: an empty text. `oids` are the parameter types that the client declared, 0 where it did not;
    inferred types are cached in `types` and `columns`."""

    named: NamedStatement | None
    oids: tuple[int, ...] = ()
    types: tuple[SqlType | None, ...] | None = None
    columns: tuple[ResultColumn, ...] | None = None
    is_described: bool = False
    form: RowForm | None = None

    @property
    def prepared(self) -> Prepared | None:
        return self.named.prepared if self.named is not None else None

    def form_of(self, columns: tuple[ResultColumn, ...], formats: tuple[int, ...]) -> RowForm:
        """That of the last run, if it had the same columns."""
        known = self.form
        if known is None or known.columns is not columns or known.formats != formats:
            known = self.form = RowForm(columns, formats)
        return known

    def check_columns(self, found: tuple[ResultColumn, ...] | None) -> None:
        """Raises if the result columns differ from those that the client was sent for this statement."""
        if not self.is_described or self.columns is None or found is None or found is self.columns:
            return
        if [(c.name, c.oid) for c in self.columns] != [(c.name, c.oid) for c in found]:
            self.is_described = False
            raise errors.ResultTypeChanged()


@dataclass(slots=True)
class Portal:
    """A statement with its parameter values. Once run, it keeps the remaining rows."""

    statement: Statement
    values: Sequence[Any] = ()
    formats: tuple[int, ...] = ()
    cursor: OpenCursor | None = None
    # Whether it is also a cursor of the session, and is closed with it.
    is_shared: bool = False

    @property
    def result(self) -> Result | None:
        return self.cursor.result if self.cursor is not None else None


class Statements:
    """Named statements belong to the session: EXECUTE finds them, DEALLOCATE and DISCARD ALL remove them."""

    def __init__(self, named: NamedStatements, count_max: int) -> None:
        self._named = named
        self._count_max = count_max
        self._by_name: dict[str, Statement] = {}

    def add(self, name: str, statement: Statement) -> None:
        if name and statement.named is not None:
            if len(self._by_name) >= self._count_max:
                self._forget_ended()
            if len(self._by_name) >= self._count_max:
                raise errors.TooManyStatements(count=len(self._by_name))
            self._named.put(name, statement.named)
        self._by_name[name] = statement

    def get(self, name: str) -> Statement:
        statement = self._by_name.get(name)
        if statement is not None and (not name or statement.named is None):
            return statement
        named = self._named.get(name)
        if statement is None or statement.named is not named:
            statement = self._by_name[name] = Statement(named)
        return statement

    def is_brief(self, name: str) -> bool:
        """Whether the name is that of a lookup by key. DEALLOCATE and PREPARE may have given it to another statement
        since the client's Parse."""
        statement = self._by_name.get(name)
        if statement is None or (name and self._named.find(name) is not statement.named):
            return False
        return statement.prepared is not None and statement.prepared.is_brief

    def remove(self, name: str) -> None:
        if self._by_name.pop(name, None) is not None and self._named.has(name):
            self._named.remove(name)

    def _forget_ended(self) -> None:
        self._by_name = {name: s for name, s in self._by_name.items() if not name or self._named.has(name)}


class Portals:
    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._by_name: dict[str, Portal] = {}

    def add(self, name: str, portal: Portal) -> None:
        if name and name in self._by_name:
            raise errors.DuplicateCursor(name=name)
        if len(self._by_name) >= self._count_max:
            raise errors.TooManyStatements(count=len(self._by_name))
        self._by_name[name] = portal

    def find(self, name: str) -> Portal | None:
        return self._by_name.get(name)

    def remove(self, name: str) -> None:
        self._by_name.pop(name, None)

    def clear(self) -> None:
        self._by_name.clear()
