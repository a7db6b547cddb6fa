"""The primary key of now in the rows of an earlier version of a table: columns of it may have been converted since."""

from __future__ import annotations

from seachange.model.ids import ColumnId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression


def past_key(now: Table, then: Table) -> tuple[Expression, ...] | None:
    """What gives the key of each row as of then, over the columns of then; None if rows have another one since."""
    found = [_past_value(now, then, column_id) for column_id in now.primary.key]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _past_value(now: Table, then: Table, column_id: ColumnId) -> Expression | None:
    """The column itself, or what it was computed from when it took the place of others."""
    if column_id in then.column_by_id:
        return Expression(column_reference(column_id), (column_id,))
    column = _column(now, column_id)
    if column is None or column.up is None:
        return None
    text = column.up.text
    used: list[ColumnId] = []
    for input_id in column.up.columns:
        value = _past_value(now, then, input_id)
        if value is None:
            return None
        text = text.replace(column_reference(input_id), f"({value.text})")
        used += value.columns
    return Expression(text, tuple(dict.fromkeys(used)))


def _column(now: Table, column_id: ColumnId) -> Column | None:
    retired = now.retired_by_id.get(column_id)
    return now.column_by_id.get(column_id) or (retired.column if retired is not None else None)
