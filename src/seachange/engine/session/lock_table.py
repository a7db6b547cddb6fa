"""LOCK TABLE: which relations it locks, and who may.

**Invariant:** when it returns, the name means the relation that is locked, and the next statement sees what others have
committed before.
"""

from __future__ import annotations

from collections.abc import Iterator

from seachange import errors
from seachange.engine.replica.contents import Relation
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import TableId
from seachange.model.locking import LockPolicy, TableLock
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import View
from seachange.model.statements import LockTables
from seachange.sql.query.databases import check_database

# Who may take any mode, and what lets a role take the weak ones, up to a mode.
_ANY_MODE = ("UPDATE", "DELETE", "TRUNCATE")
_UP_TO: tuple[tuple[TableLock, str], ...] = ((TableLock.ROW_EXCLUSIVE, "INSERT"), (TableLock.ACCESS_SHARE, "SELECT"))


def privileges_for(mode: TableLock) -> tuple[str, ...]:
    """One of them is needed."""
    return (*_ANY_MODE, *(privilege for most, privilege in _UP_TO if mode <= most))


def lock_tables(transaction: Transaction, statement: LockTables) -> None:
    policy = LockPolicy.NOWAIT if statement.nowait else LockPolicy.WAIT
    for name in statement.relations:
        check_database(name.database, transaction.port)
        _lock_relation(transaction, name, statement.mode, policy)


def _lock_relation(transaction: Transaction, name: RelationName, mode: TableLock, policy: LockPolicy) -> None:
    found = transaction.schema.relation(name.schema, name.name)
    kept = transaction.state.write_locks.tables.strong_count
    while True:
        for table in tuple(_tables_of(transaction, found, mode)):
            transaction.locks.lock_table(table, mode, policy)
        transaction.see_locked()
        before, found = found, transaction.schema.relation(name.schema, name.name)
        # Others may have given the name to another while this waited for them.
        if found.id == before.id and (isinstance(found, Table) or found == before):
            if isinstance(found, Table):
                transaction.locks.use_locked(found)
            return
        transaction.state.write_locks.tables.release_strong(kept)


def _tables_of(transaction: Transaction, relation: Relation, mode: TableLock) -> Iterator[Table]:
    """Those that a view reads are locked with it; its owner must be allowed to."""
    if not isinstance(relation, Table | View):
        raise errors.NotLockable(name=relation.name)
    transaction.state.rights.check_access(relation, *privileges_for(mode))
    if isinstance(relation, Table):
        yield relation
        return
    with transaction.state.rights.acting_as(transaction.state.rights.access_of(relation).owner):
        for id_ in relation.relation_ids:
            read = transaction.schema.table_by_id(TableId(id_)) or transaction.schema.object_by_id(id_)
            if isinstance(read, Table | View):
                yield from _tables_of(transaction, read, mode)
