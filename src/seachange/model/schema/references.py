"""Which tables refer to which: foreign keys as their parents see them, derived from the tables of one snapshot.

**Invariant:** which foreign keys reference a table is derived, never stored with the parent. A new foreign key
publishes a version of the parent too, so that it conflicts with a drop or change of the parent.
"""

from __future__ import annotations

from collections.abc import Iterable

from seachange.model.ids import TableId
from seachange.model.schema.constraint import Action, ForeignKey
from seachange.model.schema.descriptor import Table

Reference = tuple[Table, ForeignKey]


def references_to(tables: Iterable[Table], parent: TableId) -> tuple[Reference, ...]:
    """The foreign keys that refer to a table, each with the table that has it; its own included."""
    return tuple((table, key) for table in tables for key in table.foreign_keys if key.parent == parent)


def action_of(child: Table, key: ForeignKey, deleted: bool) -> Action:
    """What becomes of the rows that refer to a key which has gone. A foreign key that is to take the place of another
    leaves it to that one: nobody has seen it yet, and by it other rows may refer to the key."""
    is_successor = any(other.name == key.name and other.id < key.id for other in child.foreign_keys)
    if is_successor:
        return Action.NO_ACTION
    return key.on_delete if deleted else key.on_update
