"""Tables as the statements of a READ COMMITTED transaction see them: rows of now, in the shape of the first use.

**Invariant:** above `shaped` a table that the transaction has used has the name, columns and types of its first
use, below it those of the snapshot. A table that the transaction changes itself is as it has made it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.replica.contents import Relation
from seachange.engine.shapes.pinned_port import find_pinned, pinned
from seachange.engine.transaction.enum_labels import labelled
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import TableId
from seachange.model.schema.descriptor import Table
from seachange.sql.port.port import TransactionPort


def shaped(transaction: Transaction) -> TransactionPort:
    """The transaction as queries and changes of rows see it; nothing is in between while all is as it was."""
    port, state = labelled(transaction), transaction.state
    if not state.shapes.has_moved:
        return port
    pin = FirstUses(state)
    return replace(pinned(port, pin, state.parts.duck), names=ShapedNames(port, pin))


@dataclass(frozen=True, slots=True)
class FirstUses:
    """What tables are pinned to."""

    state: TransactionState

    def show(self, now: Table) -> Table:
        if self.state.pending.changes(now):
            return now
        self.state.shapes.check(now.id, self.state.snapshot.seq)
        return self.state.shapes.show(now)

    def show_listed(self, now: Table) -> Table:
        """For the catalogs, which list a table even if the statement could not read it."""
        return now if self.state.pending.changes(now) else self.state.shapes.show(now)

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        """The table that had this name; it may be gone by now."""
        id_ = self.state.shapes.find(database, schema, name)
        if id_ is None or self.state.pending.changed(id_):
            return None
        self.state.shapes.check(id_, self.state.snapshot.seq)
        return id_


@dataclass(frozen=True, slots=True)
class ShapedNames:
    below: TransactionPort
    pin: FirstUses

    def table(self, schema: str | None, name: str) -> Table:
        found = self.relation(schema, name)
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=name, kind="table")
        return found

    def relation(self, schema: str | None, name: str) -> Relation:
        """The first in the path: a table that had the name, or a relation that has it."""
        names = self.below.names
        for each in self.below.statement.search_path if schema is None else (schema,):
            found: Relation | None = find_pinned(self.below, self.pin, each, name)
            if found is None:
                try:
                    found = names.relation(each, name)
                except errors.UndefinedTable:
                    continue
            return self.pin.show(found) if isinstance(found, Table) else found
        return names.relation(schema, name)

    def tables(self) -> tuple[Table, ...]:
        return tuple(self.pin.show_listed(table) for table in self.below.names.tables())
