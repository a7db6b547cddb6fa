"""Which builder takes which statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seachange import errors
from seachange.model import object_statements as objects
from seachange.model import statements
from seachange.model.statements import AlterTable, DdlStatement
from seachange.planner.builders import (
    column,
    column_type,
    constraint,
    identity,
    index,
    primary_key,
    sequence,
    table,
)
from seachange.planner.builders.draft import Draft

_ACTIONS: dict[type, Callable[..., None]] = {
    statements.AddColumn: column.add_column,
    statements.DropColumn: column.drop_column,
    statements.RenameColumn: column.rename_column,
    statements.RenameTable: table.rename_table,
    statements.AlterColumnType: column_type.alter_column_type,
    statements.SetDefault: column.set_default,
    statements.SetNotNull: column.set_not_null,
    statements.DropNotNull: column.drop_not_null,
    statements.SetExpression: column_type.set_expression,
    statements.DropExpression: column_type.drop_expression,
    statements.AddIdentity: identity.add_identity,
    statements.SetIdentity: identity.set_identity,
    statements.DropIdentity: identity.drop_identity,
    statements.AddConstraint: constraint.add_constraint,
    statements.DropConstraint: constraint.drop_constraint,
    statements.RenameConstraint: constraint.rename_constraint,
    statements.ValidateConstraint: constraint.validate_constraint,
    statements.AlterPrimaryKey: primary_key.alter_primary_key,
}


def build_statement(draft: Draft, statement: DdlStatement) -> None:
    """Adds the targets of one statement to the draft."""
    build = _STATEMENTS.get(type(statement))
    if build is None:
        raise errors.FeatureNotSupported(feature=f"planning {type(statement).__name__}", instead="")
    build(draft, statement)


def _alter_table(draft: Draft, statement: AlterTable) -> None:
    if statement.if_exists and draft.find(statement.table) is None:
        draft.notices.append(f'relation "{statement.table}" does not exist, skipping')
        return
    table_id = draft.table(statement.table)
    for action in statement.actions:
        _ACTIONS[type(action)](draft, table_id, action)


_STATEMENTS: dict[type, Callable[[Draft, Any], None]] = {
    statements.CreateTable: table.create_table,
    statements.DropTable: table.drop_tables,
    statements.AlterTable: _alter_table,
    statements.CreateIndex: index.create_index,
    statements.DropIndex: index.drop_indexes,
    objects.TruncateTables: table.truncate_tables,
    objects.UndropTable: table.undrop_table,
    objects.CreateSequence: sequence.create_sequence,
    objects.AlterSequence: sequence.alter_sequence,
}
