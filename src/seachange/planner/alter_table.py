"""ALTER TABLE, action by action, on a draft of the next version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seachange import errors
from seachange.model.coercion import coerce
from seachange.model.defaults import constant_default, constant_value
from seachange.model.descriptor import Column, Index, Layout, Table
from seachange.model.ids import ColumnId, LayoutId
from seachange.model.statements import (
    AddColumn,
    AlterAction,
    AlterColumnType,
    DropColumn,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from seachange.model.types import widens
from seachange.model.values import format_canonical
from seachange.planner.create_table import build_column, check_column_names


class Draft:
    """The next version of a table while the actions of one statement change it."""

    def __init__(self, table: Table, taken: set[str]) -> None:
        self.before = table
        self.taken = taken
        self.name = table.name
        self.columns = list(table.columns)
        self.next_column_id = table.next_column_id
        self.refusals: list[errors.Error] = []
        self.notices: list[str] = []

    def find(self, name: str) -> int:
        for position, column in enumerate(self.columns):
            if column.name == name and not column.hidden:
                return position
        raise errors.UndefinedColumn(name=name, relation=self.name)

    def change(self, target: str, **fields: object) -> None:
        position = self.find(target)
        self.columns[position] = replace(self.columns[position], **fields)  # type: ignore[arg-type]

    def take_column_id(self) -> ColumnId:
        taken = self.next_column_id
        self.next_column_id = ColumnId(taken + 1)
        return taken

    def indexes_on(self, column: Column) -> list[Index]:
        return [i for i in self.before.indexes if column.id in i.key or column.id in i.include]

    def finish(self) -> Table | None:
        """The next version; None if nothing changed."""
        before = self.before
        columns = tuple(self.columns)
        if columns == before.columns and self.name == before.name:
            return None
        shape = tuple((c.id, c.type) for c in columns)
        layouts = before.layouts
        if shape != before.layout.columns:
            layouts = (*layouts, Layout(LayoutId(before.layout.id + 1), shape))
        return replace(
            before,
            version=before.version + 1,
            name=self.name,
            columns=columns,
            layouts=layouts,
            next_column_id=self.next_column_id,
        )


def apply_action(draft: Draft, action: AlterAction) -> None:
    _APPLY[type(action)](draft, action)


def _add_column(draft: Draft, action: AddColumn) -> None:
    name = action.column.name
    if any(c.name == name for c in draft.columns):
        if not action.if_not_exists:
            raise errors.DuplicateColumn(name=name)
        draft.notices.append(f'column "{name}" of relation "{draft.name}" already exists, skipping')
        return
    check_column_names([*(c.name for c in draft.columns), name])
    column = build_column(draft.take_column_id(), action.column)
    value = constant_value(column.type, column.default)
    if value is None and not column.nullable:
        draft.refusals.append(errors.NotNullViolation(column=name, relation=draft.name))
    draft.columns.append(replace(column, frozen=format_canonical(column.type, value)))


def _drop_column(draft: Draft, action: DropColumn) -> None:
    if action.if_exists and all(c.name != action.name or c.hidden for c in draft.columns):
        draft.notices.append(f'column "{action.name}" of relation "{draft.name}" does not exist, skipping')
        return
    column = draft.columns[draft.find(action.name)]
    for index in draft.indexes_on(column):
        raise errors.DependentObjectsExist(what=f"column {column.name}", dependent=f"index {index.name}")
    draft.columns.remove(column)
    if all(c.hidden for c in draft.columns):
        raise errors.FeatureNotSupported(feature="a table without columns", instead="Use DROP TABLE.")


def _rename_column(draft: Draft, action: RenameColumn) -> None:
    position = draft.find(action.name)
    others = [c.name for i, c in enumerate(draft.columns) if i != position]
    check_column_names([*others, action.new_name])
    draft.change(action.name, name=action.new_name)


def _rename_table(draft: Draft, action: RenameTable) -> None:
    if action.new_name in draft.taken:
        raise errors.DuplicateTable(name=action.new_name)
    draft.name = action.new_name


def _alter_type(draft: Draft, action: AlterColumnType) -> None:
    column = draft.columns[draft.find(action.name)]
    if column.type == action.type:
        return
    default = _recast_default(column, action)
    if widens(column.type, action.type):
        draft.change(action.name, type=action.type, default=default)
        return
    feature = f"changing column {column.name} from {column.type} to {action.type}"
    if draft.indexes_on(column):
        raise errors.FeatureNotSupported(feature=feature, instead="A key column can only be widened.")
    # The rows of older snapshots keep the old column: a new one takes its place and its name.
    draft.refusals.append(errors.FeatureNotSupported(feature=feature, instead="It works while the table is empty."))
    draft.change(action.name, id=draft.take_column_id(), type=action.type, default=default, frozen=None)


def _recast_default(column: Column, action: AlterColumnType) -> str | None:
    value = constant_value(column.type, column.default)
    return constant_default(action.type, coerce(action.type, value))


def _set_default(draft: Draft, action: SetDefault) -> None:
    column = draft.columns[draft.find(action.name)]
    text = action.default.text if action.default is not None else None
    draft.change(action.name, default=constant_default(column.type, coerce(column.type, text)))


def _set_not_null(draft: Draft, action: SetNotNull) -> None:
    if draft.columns[draft.find(action.name)].nullable:
        draft.refusals.append(
            errors.FeatureNotSupported(
                feature="SET NOT NULL on a table that has rows", instead="It works while the table is empty."
            )
        )
        draft.change(action.name, nullable=False)


def _drop_not_null(draft: Draft, action: DropNotNull) -> None:
    column = draft.columns[draft.find(action.name)]
    if column.id in draft.before.primary.key:
        detail = f'column "{column.name}" is in a primary key'
        raise errors.InvalidTableDefinition(name=draft.name, detail=detail)
    draft.change(action.name, nullable=True)


_APPLY: dict[type, Callable[..., None]] = {
    AddColumn: _add_column,
    DropColumn: _drop_column,
    RenameColumn: _rename_column,
    RenameTable: _rename_table,
    AlterColumnType: _alter_type,
    SetDefault: _set_default,
    SetNotNull: _set_not_null,
    DropNotNull: _drop_not_null,
}
