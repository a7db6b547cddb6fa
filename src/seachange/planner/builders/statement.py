"""Which builder takes which statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seachange.model import statements
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.planner.builders import (
    column,
    column_type,
    comment,
    constraint,
    counterpart,
    drop_objects,
    enum_type,
    foreign_key,
    identity,
    index,
    primary_key,
    privilege,
    revert,
    row_id,
    schema,
    sequence,
    table,
    undrop,
    view,
)
from seachange.planner.builders import object as general
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import check_dependents
from seachange.planner.builders.lookup import find_object

_ACTIONS: dict[type, Callable[..., None]] = {
    **column.ACTIONS,
    statements.AlterColumnType: column_type.alter_column_type,
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
    statements.AddRowId: row_id.add_row_id,
    statements.DropRowId: row_id.drop_row_id,
}


def build_statement(draft: Draft, statement: statements.DdlStatement) -> None:
    """Adds the targets of one statement to the draft."""
    try:
        _STATEMENTS[type(statement)](draft, statement)
    finally:
        # A drop of something that others depend on is reported first, whatever else is wrong.
        check_dependents(draft)


def _alter_table(draft: Draft, statement: statements.AlterTable) -> None:
    match statement.actions:
        case (statements.RenameTable(new_name=new_name),):
            # ALTER TABLE renames every kind of relation.
            found = find_object(draft, ObjectKind.TABLE, statement.table, statement.if_exists, _RELATIONS)
            if found is not None:
                general.rename(draft, found, new_name)
        case actions:
            found = find_object(draft, ObjectKind.TABLE, statement.table, statement.if_exists)
            if found is None:
                return
            draft.refuse_unseen_rows(found.id)
            downs = counterpart.find_downs(draft, found.id, actions)
            with primary_key.replacing_key(draft, found.id, order_clauses(actions)) as ordered:
                for action in ordered:
                    _ACTIONS[type(action)](draft, found.id, action)
            counterpart.add_downs(draft, found.id, downs)
            if any(isinstance(action, statements.AlterColumnType | statements.SetExpression) for action in actions):
                foreign_key.settle_references(draft, found.id)


_RELATIONS = VIEWS | {ObjectKind.SEQUENCE, ObjectKind.INDEX}

_STATEMENTS: dict[type, Callable[[Draft, Any], None]] = {
    statements.CreateTable: table.create_table,
    statements.DropTable: drop_objects.drop_tables,
    statements.AlterTable: _alter_table,
    statements.CreateIndex: index.create_index,
    statements.DropIndex: index.drop_indexes,
    statements.TruncateTables: table.truncate_tables,
    statements.UndropTable: undrop.undrop_table,
    statements.RevertChange: revert.revert_change,
    statements.DropObjects: drop_objects.drop_objects,
    statements.RenameObject: general.rename_object,
    statements.MoveObject: general.move_object,
    statements.ChangeOwner: general.change_owner,
    statements.CommentOn: comment.comment_on,
    statements.Grant: privilege.change_privileges,
    statements.CreateDatabase: schema.create_database,
    statements.CreateSchema: schema.create_schema,
    statements.CreateSequence: sequence.create_sequence,
    statements.AlterSequence: sequence.alter_sequence,
    statements.CreateEnum: enum_type.create_enum,
    statements.AddEnumValue: enum_type.add_enum_value,
    statements.RenameEnumValue: enum_type.rename_enum_value,
    statements.DropEnumValue: enum_type.drop_enum_value,
    statements.CreateView: view.create_view,
    statements.CreateMaterializedView: table.create_materialized_view,
    statements.RefreshView: table.refresh_view,
}


# The order in which the clauses of one ALTER TABLE are carried out: PostgreSQL's, whatever order they are written in.
#
# What goes, goes first, and what comes finds the types that columns have then. A default that is dropped is not
# converted, a generated column that becomes a plain one keeps its values whatever becomes of those that it was
# generated from, and a constraint may stand before the column that it is about.
def order_clauses(actions: Sequence[statements.AlterAction]) -> list[statements.AlterAction]:
    """Of the same kind as they are written."""
    added = {action.column.name for action in actions if isinstance(action, statements.AddColumn)}
    read = {name for action in actions for name in _read(action)}
    return sorted(actions, key=lambda action: _turn(action, added, read))


def _read(action: statements.AlterAction) -> tuple[str, ...]:
    """The columns of the rows as they were that values are computed from."""
    match action:
        case statements.AlterColumnType(using=statements.ExpressionDefinition() as using):
            return using.columns
        case statements.AddColumn(column=statements.ColumnDefinition(up=statements.ExpressionDefinition() as up)):
            return up.columns
        case _:
            return ()


def _turn(action: statements.AlterAction, added: set[str], read: set[str]) -> int:
    match action:
        case statements.DropColumn(name=name):
            # USING is about the rows as they were.
            return 3 if name in read and name not in added else 0
        # PostgreSQL does not find a column that the statement adds: what is said of it counts for the rows to come.
        case statements.SetDefault(name=name, default=None) | statements.DropNotNull(name=name):
            return 4 if name in added else 0
        case statements.DropConstraint() | statements.DropExpression() | statements.DropIdentity():
            return 0
        case statements.AlterColumnType(name=name):
            return 4 if added & {name, *_read(action)} else 1
        case statements.AddColumn():
            return 3
        case statements.AddIdentity():
            # It takes a column that is NOT NULL.
            return 5
        case _:
            return 4
