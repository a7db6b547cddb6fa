"""The hidden numbers by which the rows of a table without a primary key are known."""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.ids import ColumnId, TableId
from seachange.model.statements import AddRowId, DropRowId
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_column_parts
from seachange.planner.builders.rebuild import rebuild_primary
from seachange.values.types import BIGINT

_NAME = "rowid"


def find_row_id(draft: Draft, table_id: TableId) -> ColumnId | None:
    hidden = [column.column_id for column in draft.select(elements.ColumnElement, table_id=table_id) if column.hidden]
    computed = {generated.column_id for generated in draft.select(elements.ColumnGenerated, table_id=table_id)}
    return next((column_id for column_id in hidden if column_id not in computed), None)


def define_row_id(draft: Draft, table_id: TableId) -> ColumnId:
    column_id = draft.take_column_id(table_id)
    names = {c.folded for c in draft.select(elements.ColumnName, table_id=table_id)}
    name = next(n for n in (_NAME, *(f"{_NAME}{i}" for i in range(len(names)))) if n not in names)
    draft.add(elements.ColumnElement(table_id, column_id, hidden=True))
    draft.add(elements.ColumnName(table_id, column_id, name))
    draft.add(elements.ColumnType(table_id, column_id, BIGINT))
    required = elements.ColumnNotNull(table_id, column_id)
    draft.implied[required] = "every row is given a number"
    draft.add(required)
    return column_id


def add_row_id(draft: Draft, table_id: TableId, action: AddRowId) -> None:
    """To a table with rows, each of which gets its number once, whichever session writes it meanwhile."""
    del action
    rebuild_primary(draft, table_id, define_row_id(draft, table_id))
    draft.drawn.add(table_id)


def drop_row_id(draft: Draft, table_id: TableId, action: DropRowId) -> None:
    del action
    column_id = find_row_id(draft, table_id)
    assert column_id is not None
    drop_column_parts(draft, table_id, column_id)
