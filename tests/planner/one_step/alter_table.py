"""ALTER TABLE, action by action, on a draft of the next version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from seachange import errors
from seachange.model.ids import ColumnId, LayoutId, TableId
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.defaults import constant_default, constant_value
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.statements.table_statements import (
    AddColumn,
    AddConstraint,
    AlterAction,
    AlterColumnType,
    DropColumn,
    DropConstraint,
    DropNotNull,
    ExpressionDefinition,
    ForeignKeyDefinition,
    KeyDefinition,
    RenameColumn,
    RenameTable,
    RuleDefinition,
    SetDefault,
    SetNotNull,
)
from seachange.values.canonical import format_canonical
from seachange.values.coercion import coerce
from seachange.values.types import SqlType, widens
from tests.planner.one_step.constraint import References, add_rules, constraint_names
from tests.planner.one_step.create_table import build_column, build_index, check_column_names


class Draft:
    """The next version of a table while the actions of one statement change it."""

    def __init__(
        self, table: Table, taken: set[str], tables: Mapping[tuple[str, str], Table], ids: Iterator[int]
    ) -> None:
        self.before = table
        self.taken = taken
        self.tables = tables
        self.ids = ids
        self.name = table.name
        self.columns = list(table.columns)
        self.secondary = list(table.secondary)
        self.checks = list(table.checks)
        self.foreign_keys = list(table.foreign_keys)
        # Constraints to be added once the columns are as they will be, and foreign keys elsewhere that go.
        self.rules: list[RuleDefinition] = []
        self.others: dict[TableId, Table] = {}
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
        indexes = (self.before.primary, *self.secondary)
        return [i for i in indexes if column.id in i.key or column.id in i.include]

    def rules_on(self, column: Column) -> list[str]:
        rules: list[Check | ForeignKey] = [*self.checks, *self.foreign_keys]
        return [rule.name for rule in rules if column.id in rule.columns]

    def refuse_rows(self, feature: str) -> None:
        """The action is planned for a table without rows."""
        refusal = errors.FeatureNotSupported(feature=feature, instead="It works while the table is empty.")
        self.refusals.append(refusal)

    def finish(self) -> Table | None:
        """The next version; None if nothing changed."""
        before = self.before
        columns = tuple(self.columns)
        shape = tuple((c.id, c.type) for c in columns)
        layouts = before.layouts
        if shape != before.layout.columns:
            layouts = (*layouts, Layout(LayoutId(before.layout.id + 1), shape))
        after = replace(
            before,
            name=self.name,
            columns=columns,
            secondary=tuple(self.secondary),
            layouts=layouts,
            next_column_id=self.next_column_id,
            checks=tuple(self.checks),
            foreign_keys=tuple(self.foreign_keys),
        )
        after = add_rules(after, self.rules, self.tables)
        return None if after == before else replace(after, version=before.version + 1)


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
    draft.rules += action.rules
    # Rows that are there have a NULL in the new column, which refers to nothing.
    if any(value is not None or not isinstance(rule, ForeignKeyDefinition) for rule in action.rules):
        draft.refuse_rows("ADD COLUMN with a constraint on a table that has rows")


def _drop_column(draft: Draft, action: DropColumn) -> None:
    if action.if_exists and all(c.name != action.name or c.hidden for c in draft.columns):
        draft.notices.append(f'column "{action.name}" of relation "{draft.name}" does not exist, skipping')
        return
    column = draft.columns[draft.find(action.name)]
    for index in draft.indexes_on(column):
        raise errors.DependentObjectsExist(what=f"column {column.name}", dependents=f"index {index.name}")
    draft.columns.remove(column)
    # As in PostgreSQL, constraints of the table itself go with any of their columns.
    draft.checks = [check for check in draft.checks if column.id not in check.columns]
    draft.foreign_keys = [key for key in draft.foreign_keys if column.id not in key.columns]
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
    assert isinstance(action.type, SqlType)
    if column.type == action.type:
        return
    default = _recast_default(column, action.type)
    if widens(column.type, action.type):
        draft.change(action.name, type=action.type, default=default)
        return
    feature = f"changing column {column.name} from {column.type} to {action.type}"
    if draft.indexes_on(column):
        raise errors.FeatureNotSupported(feature=feature, instead="A key column can only be widened.")
    for name in draft.rules_on(column):
        raise errors.FeatureNotSupported(feature=feature, instead=f"Drop constraint {name} first.")
    # The rows of older snapshots keep the old column: a new one takes its place and its name.
    draft.refusals.append(errors.FeatureNotSupported(feature=feature, instead="It works while the table is empty."))
    draft.change(action.name, id=draft.take_column_id(), type=action.type, default=default, frozen=None)


def _recast_default(column: Column, type_: SqlType) -> str | None:
    value = constant_value(column.type, column.default)
    return constant_default(type_, coerce(type_, value))


def _set_default(draft: Draft, action: SetDefault) -> None:
    column = draft.columns[draft.find(action.name)]
    assert not isinstance(action.default, ExpressionDefinition)
    text = action.default.text if action.default is not None else None
    draft.change(action.name, default=constant_default(column.type, coerce(column.type, text)))


def _set_not_null(draft: Draft, action: SetNotNull) -> None:
    if draft.columns[draft.find(action.name)].nullable:
        draft.refuse_rows("SET NOT NULL on a table that has rows")
        draft.change(action.name, nullable=False)


def _drop_not_null(draft: Draft, action: DropNotNull) -> None:
    column = draft.columns[draft.find(action.name)]
    if column.id in draft.before.primary.key:
        detail = f'column "{column.name}" is in a primary key'
        raise errors.InvalidTableDefinition(name=draft.name, detail=detail)
    draft.change(action.name, nullable=True)


def _add_constraint(draft: Draft, action: AddConstraint) -> None:
    draft.refuse_rows("ADD CONSTRAINT on a table that has rows")
    if not isinstance(action.constraint, KeyDefinition):
        draft.rules.append(action.constraint)
        return
    index = build_index(action.constraint, draft.name, draft.columns, "key", draft.taken, draft.ids)
    draft.secondary.append(index)


def _drop_constraint(draft: Draft, action: DropConstraint) -> None:
    name = action.name
    if name not in constraint_names(draft.before):
        if not action.if_exists:
            raise errors.UndefinedObject(kind="constraint", name=name)
        draft.notices.append(f'constraint "{name}" of relation "{draft.name}" does not exist, skipping')
        return
    draft.checks = [check for check in draft.checks if check.name != name]
    draft.foreign_keys = [key for key in draft.foreign_keys if key.name != name]
    if name == draft.before.primary.name:
        raise errors.FeatureNotSupported(feature="DROP CONSTRAINT of a primary key", instead="")
    for index in [i for i in draft.secondary if i.name == name]:
        draft.refuse_rows("DROP CONSTRAINT of a unique key on a table that has rows")
        draft.secondary.remove(index)
        _drop_references(draft, index, action.cascade)


def _drop_references(draft: Draft, index: Index, cascade: bool) -> None:
    own = replace(draft.before, foreign_keys=tuple(draft.foreign_keys))
    others = [table for table in draft.tables.values() if table.id != own.id]
    references = References([*others, own], cascade)
    references.release_index(own, index, f"constraint {index.name} on table {own.name}")
    changed = dict(references.changed)
    draft.foreign_keys = list(changed.pop(own.id, own).foreign_keys)
    draft.others |= changed


_APPLY: dict[type, Callable[..., None]] = {
    AddColumn: _add_column,
    DropColumn: _drop_column,
    RenameColumn: _rename_column,
    RenameTable: _rename_table,
    AlterColumnType: _alter_type,
    SetDefault: _set_default,
    SetNotNull: _set_not_null,
    DropNotNull: _drop_not_null,
    AddConstraint: _add_constraint,
    DropConstraint: _drop_constraint,
}
