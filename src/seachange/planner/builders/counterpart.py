"""UP and DOWN: what rows are in an earlier shape of their table, and the reverse.

**Invariant:** DOWN of a column is bound to the columns that its statement leaves, UP to those that it finds. Both say
so by id: what becomes of these columns later does not change what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from seachange import errors
from seachange.model import statements
from seachange.model.change import elements
from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.expression import Expression
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.expression import bind_expression, refuse_computed_enum

Down = tuple[ColumnId, statements.ExpressionDefinition]


def bind_up(draft: Draft, table_id: TableId, definition: statements.ColumnDefinition) -> Expression:
    assert definition.up is not None
    if draft.is_new(table_id):
        raise errors.FeatureNotSupported(
            feature="UP USING for a column of a table that the same transaction creates",
            instead="No program knows an earlier shape of the table: leave it out.",
        )
    bound = bind_expression(draft, table_id, definition.up.pieces, definition.up.columns)
    for used in bound.columns:
        name = draft.column_name(table_id, used)
        if draft.select(elements.ColumnGenerated, table_id=table_id, column_id=used):
            raise errors.InvalidObjectDefinition(
                detail=f'cannot use generated column "{name}" in UP USING: write its expression instead'
            )
        if draft.column_element(table_id, used) in draft.targets and not draft.has_no_rows(table_id):
            raise errors.FeatureNotSupported(
                feature=f"UP USING column {name}, which comes into being by the same transaction,",
                instead="Compute the value from columns that rows have, or commit first.",
            )
    return bound


def find_downs(draft: Draft, table_id: TableId, actions: Sequence[statements.AlterAction]) -> list[Down]:
    """The columns that go, or are converted, with what their values will be then."""
    found = []
    for action in actions:
        if not isinstance(action, statements.DropColumn | statements.AlterColumnType) or action.down is None:
            continue
        if not draft.select(elements.ColumnName, table_id=table_id, name=action.name):
            # IF EXISTS, or an error.
            continue
        column_id = draft.column(table_id, action.name)
        refuse_computed_enum(draft.column_type(table_id, column_id).type, "DOWN USING")
        found.append((column_id, action.down))
    return found


def add_downs(draft: Draft, table_id: TableId, downs: Sequence[Down]) -> None:
    """Of a column of which other sessions know nothing, nothing has to be said."""
    known = draft.catalog.descriptors.get(table_id)
    shown = {column.id for column in known.visible_columns} if isinstance(known, Table) else set()
    for column_id, definition in downs:
        if column_id in shown:
            bound = bind_expression(draft, table_id, definition.pieces, definition.columns)
            draft.add(elements.ColumnDown(table_id, column_id, bound))
