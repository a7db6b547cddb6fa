"""A table as a dict: what the store is compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Table
from seachange.values.canonical import parse_canonical

Row = tuple[Any, ...]
Record = dict[ColumnId, Any]

ID, CODE, NUMBER = ColumnId(1), ColumnId(2), ColumnId(3)


@dataclass(frozen=True)
class State:
    """The table at one sequence: its descriptor, and its rows by primary key."""

    table: Table
    rows: Mapping[int, Record]

    def tuples(self) -> list[Row]:
        return sorted((self.tuple_of(key) for key in self.rows), key=repr)

    def tuple_of(self, key: int) -> Row:
        return tuple(self.rows[key][column.id] for column in self.table.columns)

    def record(self, key: int, code: str | None, number: int | None) -> Record:
        """A row to write: the columns beyond the first three say which version wrote them."""
        values: Record = {ID: key, CODE: code, NUMBER: number}
        extra = {c.id: self.table.version for c in self.table.columns if c.id not in values}
        return {column.id: {**extra, **values}[column.id] for column in self.table.columns}

    def holds_code(self, code: str | None, but: int | None = None) -> bool:
        return code is not None and any(r[CODE] == code for key, r in self.rows.items() if key != but)

    def with_row(self, record: Record) -> "State":
        return State(self.table, {**self.rows, record[ID]: record})

    def without(self, key: int) -> "State":
        return State(self.table, {k: r for k, r in self.rows.items() if k != key})

    def with_table(self, table: Table) -> "State":
        """The same rows as another version sees them: what they lack takes the frozen value."""
        frozen = {c.id: parse_canonical(c.type, c.frozen) for c in table.columns}
        return State(table, {k: {c: r.get(c, frozen[c]) for c in frozen} for k, r in self.rows.items()})
