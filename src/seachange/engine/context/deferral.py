"""Which deferrable constraints of a transaction are checked at its end: as declared, until SET CONSTRAINTS says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from seachange import errors
from seachange.model.ids import ConstraintId, TableId
from seachange.model.relation import RelationName
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Table

# A foreign key by the table that has it.
ConstraintName = tuple[TableId, ConstraintId]


@dataclass(frozen=True, slots=True)
class Deferral:
    """`everything`: what was said of ALL, None if nothing; `named`: what was said of single constraints since."""

    everything: bool | None = None
    named: Mapping[ConstraintName, bool] = field(default_factory=dict)

    def is_deferred(self, table: Table, key: ForeignKey) -> bool:
        if not key.deferrable:
            return False
        fallback = key.initially_deferred if self.everything is None else self.everything
        return self.named.get((table.id, key.id), fallback)

    def set(self, names: Iterable[ConstraintName] | None, deferred: bool) -> Deferral:
        if names is None:
            return Deferral(deferred)
        return replace(self, named={**self.named, **dict.fromkeys(names, deferred)})


AS_DECLARED = Deferral()


def find_deferrable(tables: Iterable[Table], name: RelationName) -> list[ConstraintName]:
    """The constraints of this name, of whatever tables."""
    wanted = [table for table in tables if name.schema in (None, table.schema)]
    keys = [(table, key) for table in wanted for key in table.foreign_keys if key.name == name.name]
    others = {check.name for table in wanted for check in table.checks}
    others |= {index.name for table in wanted for index in table.indexes}
    if not keys and name.name not in others:
        raise errors.UndefinedObject(kind="constraint", name=name)
    if not keys or not all(key.deferrable for _, key in keys):
        raise errors.NotDeferrable(constraint=name)
    return [(table.id, key.id) for table, key in keys]
