"""Elements of constraints."""

from __future__ import annotations

from dataclasses import dataclass, field

from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.schema.constraint import Action


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    table_id: TableId
    constraint_id: ConstraintId
    expression: str
    column_ids: tuple[ColumnId, ...]
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKeyElement:
    """`uncommitted`: a transaction block adds it."""

    table_id: TableId
    constraint_id: ConstraintId
    column_ids: tuple[ColumnId, ...]
    parent_id: TableId
    parent_index_id: IndexId
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    deferrable: bool = False
    initially_deferred: bool = False
    match_full: bool = False
    not_valid: bool = False
    uncommitted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ForeignKeyParent:
    """The other end of a foreign key: what the table referred to has to know of it."""

    parent_id: TableId
    table_id: TableId
    constraint_id: ConstraintId


@dataclass(frozen=True, slots=True)
class ConstraintName:
    table_id: TableId
    constraint_id: ConstraintId
    name: str


Constraint = CheckConstraint | ForeignKeyElement
ConstraintTopic = Constraint | ForeignKeyParent | ConstraintName
