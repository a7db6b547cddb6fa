"""Foreign keys as seen from the parent: which tables reference which, derived from the tables of one snapshot.

**Invariant:** which foreign keys reference a table is derived, never stored with the parent. A new foreign key
publishes a version of the parent too, so that it conflicts with a drop or change of the parent. A transaction block may
have published one whose parent, or whose parent's key, is known to itself alone: no other session refers by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from seachange.model.schema.constraint import Action, ForeignKey
from seachange.model.schema.descriptor import Table

Reference = tuple[Table, ForeignKey]


def references_to(tables: Iterable[Table], parent: Table) -> tuple[Reference, ...]:
    """The foreign keys that reference a table by a key that it has, each with its table; self-references included."""
    known, id_ = parent.index_by_id, parent.id
    keys = ((table, key) for table in tables for key in table.foreign_keys if key.parent == id_)
    return tuple((table, key) for table, key in keys if key.parent_index in known)


def action_of(child: Table, key: ForeignKey, deleted: bool) -> Action:
    """The action on rows that reference a deleted or changed key. A foreign key that is going to replace another leaves
    the action to that one: it is not visible yet, and other rows may reference the key by it."""
    is_successor = any(other.name == key.name and other.id < key.id for other in child.foreign_keys)
    if is_successor:
        return Action.NO_ACTION
    return key.on_delete if deleted else key.on_update
