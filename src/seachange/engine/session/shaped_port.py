"""Tables as the statements of a READ COMMITTED transaction see them: rows of now, in the shape of the first use.

**Invariant:** above `ShapedPort` a table that the transaction has used has the name, columns and types of its first
use, below it those of the snapshot. A table that the transaction changes itself is as it has made it.
"""

from __future__ import annotations

from seachange import errors
from seachange.engine.replica.schema_history import Relation
from seachange.engine.session.enum_labels import labelled
from seachange.engine.session.pinned_port import PinnedPort
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import TableId
from seachange.model.schema.descriptor import Table
from seachange.sql.port.port import TransactionPort


def shaped(transaction: Transaction) -> TransactionPort:
    """The transaction as queries and changes of rows see it; without a port in between while all is as it was."""
    port = labelled(transaction)
    return ShapedPort(port, transaction) if transaction.shapes.has_moved else port


class _FirstUse:
    """What tables are pinned to."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def show(self, now: Table) -> Table:
        transaction = self._transaction
        if transaction.pending.changes(now):
            return now
        transaction.shapes.check(now.id, transaction.snapshot)
        return transaction.shapes.show(now)

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        """The table that had this name; it may be gone by now."""
        id_ = self._transaction.shapes.find(database, schema, name)
        if id_ is None or self._transaction.pending.changed(id_):
            return None
        self._transaction.shapes.check(id_, self._transaction.snapshot)
        return id_


class ShapedPort(PinnedPort):
    def __init__(self, port: TransactionPort, transaction: Transaction) -> None:
        super().__init__(port, _FirstUse(transaction))
        self._transaction = transaction

    def table(self, schema: str | None, name: str) -> Table:
        found = self.relation(schema, name)
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=name, kind="table")
        return found

    def tables(self) -> tuple[Table, ...]:
        """For the catalogs, which list a table even if the statement could not read it."""
        changed, show = self._transaction.changes_table, self._transaction.shapes.show
        return tuple(table if changed(table) else show(table) for table in self._port.tables())

    def _known(self, schema: str | None, name: str) -> Relation | None:
        """The first in the path: a table that had the name, or a relation that has it."""
        for each in self._port.search_path if schema is None else (schema,):
            id_ = self._pin.find(self._port.session.database, each, name)
            found = self._port.table_by_id(id_) if id_ is not None else None
            if found is not None:
                # By its name of now: that is how the port below prepares it.
                return self._port.table(found.schema, found.name)
            try:
                return self._port.relation(each, name)
            except errors.UndefinedTable:
                continue
        return None
