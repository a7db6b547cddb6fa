"""Recorded violations of foreign keys, when a transaction commits: they were recorded by writers that did not know the
rows of the transaction that adds the foreign key.

**Invariant:** as of the sequence with which the commit of a foreign key declares its constraint, every row that the
commit would leave has its parent. Commits above the sequence that have recorded a violation are a conflict.

**Invariant:** a violation is forgotten only by a commit that was planned with an older version of its table than the
one that made the foreign key public, which has fenced it: the row is checked when the commit is rebased.
"""

from __future__ import annotations

from collections.abc import Iterator

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.constraints.own_keys import violated_concurrently
from seachange.model.ids import KeyHash, Seq
from seachange.model.schema.constraint import ConstraintKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.references import Reference
from seachange.model.states import REFUSING
from seachange.storage.keys import constraint_hash

# How often rows are read again while others keep recording violations.
LOOKS_MAX = 20


def look_again(txn: TransactionState, foreign_keys: ForeignKeys, writes: dict[KeyHash, Seq]) -> bool:
    """Reads all rows of foreign keys that this transaction adds, and of which others have recorded violations since
    the validation: a parent may be among its own rows, or the row be gone. Raises SerializationFailure if a row has no
    parent. Returns whether there was such a foreign key; the commit is to be validated again then."""
    is_found = False
    for hashed, (child, key) in _added(txn):
        base = txn.declared.changed[hashed]
        if txn.parts.catalog.first_reliance(txn.epoch.epoch, [hashed], base) is None:
            continue
        is_found, at = True, txn.epoch.catch_up()
        with txn.snapshot.reading_at(at):
            problem = foreign_keys.find_orphan(child, key)
        if problem is not None:
            recorded = txn.parts.catalog.first_violation([hashed], base)
            raise violated_concurrently(key.name, problem, recorded)
        txn.declared.changed[hashed] = writes[hashed] = at
    return is_found


def _added(txn: TransactionState) -> Iterator[tuple[KeyHash, Reference]]:
    for id_ in txn.pending.ids if txn.declared.constraints else ():
        _, table = txn.pending.change(id_) or (None, None)
        if not isinstance(table, Table):
            continue
        for key in table.foreign_keys:
            hashed = constraint_hash(ConstraintKind.FOREIGN_KEY, table.id, key.id)
            if hashed in txn.declared.constraints and hashed in txn.declared.changed:
                yield hashed, (table, key)


def forget_committed(txn: TransactionState) -> bool:
    """Forgets the violations of foreign keys that have become public since. Returns whether there was one."""
    declared, newest = txn.declared, txn.epoch.schemas.newest.by_id
    tables = (newest[id_] for id_ in txn.used if id_ in newest) if declared.violations else ()
    keys = [(table.id, key.id) for table in tables for key in table.foreign_keys if key.state in REFUSING]
    hashes = [constraint_hash(ConstraintKind.FOREIGN_KEY, *key) for key in keys]
    found = [hashed for hashed in hashes if hashed in declared.violations]
    for hashed in found:
        del declared.violations[hashed]
        declared.shares.pop(hashed, None)
    return bool(found)
