"""The shape of a table in a transaction: the name, columns and types that it had when the transaction first used it.

**Invariant:** a table shown in a shape has all columns of the shape that are not lost, by id, under their earlier
names. Every current value is a value of the earlier type, except for integers, which keep their narrower type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from seachange.model.ids import ColumnId, ConstraintId
from seachange.model.schema.access import Access
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.pinned import has_taken_place, hide_column, pinned_with
from seachange.values.types import INTEGERS, Kind, SqlType

T = TypeVar("T", Index, Check, ForeignKey)

_TEXTS = frozenset({Kind.VARCHAR, Kind.TEXT})


# What a statement with ON CONFLICT needs besides columns: no column has this name.
CONFLICT_TARGETS = "ON CONFLICT"


def show_in_shape(now: Table, shape: Table, wide: bool = False) -> Table:
    """The table itself if its shape has not changed. `wide`: integers in their current type."""
    columns = tuple(_show_column(column, now, shape, wide) for column in now.columns)
    if columns == now.columns and (shape.schema, shape.name) == (now.schema, now.name):
        return now
    return pinned_with(now, columns=columns, schema=shape.schema, name=shape.name)


def is_narrowed(now: Table, shape: Table) -> bool:
    """Whether there may be integers that are out of range for the shape."""
    return show_in_shape(now, shape, wide=True) != show_in_shape(now, shape)


def lost_parts(now: Table, shape: Table) -> frozenset[str]:
    """Names of columns that no longer exist, or whose type has changed incompatibly; and `CONFLICT_TARGETS` if a unique
    key was dropped."""
    visible = {column.id: column for column in now.visible_columns}
    lost = {
        column.name
        for column in shape.visible_columns
        if column.id not in visible or _shown_type(column.type, visible[column.id].type) is None
    }
    if not _conflict_targets(shape) <= _conflict_targets(now):
        lost.add(CONFLICT_TARGETS)
    return frozenset(lost)


def _conflict_targets(table: Table) -> set[tuple[object, ...]]:
    """What ON CONFLICT finds its indexes by. A primary index that is written again has another id, and is the same
    target."""
    unique = (index for index in table.readable if index.unique)
    return {(index.name, frozenset(index.key), index.where, index.nulls_distinct) for index in unique}


def without_lost(shape: Table, now: Table) -> Table:
    """The shape of a transaction that never used the lost columns. A column that replaced one under its name is
    included."""
    lost = lost_parts(now, shape)
    found = (now.column_by_name.get(c.name) if c.name in lost else c for c in shape.columns)
    columns = tuple(column for column in found if column is not None)
    return replace(shape, columns=columns, primary=now.primary, secondary=now.secondary)


def has_same_plan(before: Table, after: Table) -> bool:
    """Whether rows written with one version are what the other would have written: only names, comments, privileges and
    defaults may differ. A value of an enum type may have been dropped by a version that is otherwise equal."""
    if before.version == after.version:
        return True
    return not before.enum_places and _plan_of(before) == _plan_of(after)


def _plan_of(table: Table) -> Table:
    coming = table.next_primary
    return replace(
        table,
        version=0,
        schema="",
        name="",
        access=Access(),
        next_column_id=ColumnId(0),
        next_constraint_id=ConstraintId(0),
        columns=tuple(replace(c, name="", default=None, default_sequences=()) for c in table.columns),
        primary=_unnamed(table.primary),
        secondary=tuple(_unnamed(index) for index in table.secondary),
        next_primary=None if coming is None else _unnamed(coming),
        later_primaries=tuple(_unnamed(index) for index in table.later_primaries),
        checks=tuple(_unnamed(check) for check in table.checks),
        foreign_keys=tuple(_unnamed(key) for key in table.foreign_keys),
        retired=(),
    )


def _unnamed(element: T) -> T:
    return replace(element, name="")


def _show_column(column: Column, now: Table, shape: Table, wide: bool) -> Column:
    if column not in now.visible_columns:
        return column
    known = shape.column_by_id.get(column.id)
    if known is not None and known in shape.visible_columns:
        type_ = column.type if wide and column.type.kind in INTEGERS else _shown_type(known.type, column.type)
        return replace(column, name=known.name, type=type_ or column.type)
    return column if has_taken_place(column, now, shape) else hide_column(column)


def _shown_type(then: SqlType, now: SqlType) -> SqlType | None:
    """The type in which current values are shown; None if they would be of another kind."""
    kinds = {then.kind, now.kind}
    if len(kinds) == 1:
        return now if then.enum == now.enum and (then.element is None) == (now.element is None) else None
    if kinds <= INTEGERS:
        return then
    return replace(then, length=0) if kinds <= _TEXTS else None
