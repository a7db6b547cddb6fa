"""A table in the shape of an earlier version: the current table with the names, columns and types of then.

**Invariant:** it has the columns of the current table, in their positions, by id: rows, keys, states and constraints
are the same. A column that the earlier version lacks is WRITE_ONLY: maintained, and never named.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import State
from seachange.values.types import Kind, SqlType

_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_TEXTS = frozenset({Kind.VARCHAR, Kind.TEXT})


@dataclass(frozen=True)
class PinnedTable(Table):
    """`now` is the current table."""

    now: Table | None = None


def widened_columns(now: Table, then: Table) -> frozenset[str]:
    """The names of columns whose type of now has values that the one of then lacks."""
    known = ((column, now.column_by_id.get(column.id)) for column in then.visible_columns)
    return frozenset(
        column.name for column, own in known if own is not None and _shown_type(column.type, own.type) != own.type
    )


def pin_table(now: Table, then: Table, wide: frozenset[str] = frozenset()) -> Table:
    """The table itself if its shape has not changed. Columns of names in `wide` have their types of now."""
    columns = tuple(_pin_column(column, now, then, wide) for column in now.columns)
    if columns == now.columns and then.name == now.name:
        return now
    return pinned_with(now, columns=columns, name=then.name)


def pinned_with(now: Table, **changes: Any) -> Table:
    """The current table with these differences."""
    kept = {field.name: getattr(now, field.name) for field in fields(Table)}
    return PinnedTable(**{**kept, **changes}, now=now)


def table_now(table: Table) -> Table:
    return table.now if isinstance(table, PinnedTable) and table.now is not None else table


def _pin_column(column: Column, now: Table, then: Table, wide: frozenset[str]) -> Column:
    if column not in now.visible_columns:
        return column
    known = then.column_by_id.get(column.id)
    if known is not None and known in then.visible_columns:
        type_ = column.type if known.name in wide else _shown_type(known.type, column.type)
        return replace(column, name=known.name, type=type_)
    return column if has_taken_place(column, now, then) else replace(column, state=State.WRITE_ONLY)


def has_taken_place(column: Column, now: Table, then: Table) -> bool:
    """Whether the column replaced one that was converted and dropped: it has its name."""
    replaced = then.column_by_name.get(column.name)
    return replaced is not None and replaced.id not in {each.id for each in now.visible_columns}


def _shown_type(then: SqlType, now: SqlType) -> SqlType:
    """The earlier type, where a value of the current type is the same value there or none at all: what is read is
    written back unchanged."""
    kinds = {then.kind, now.kind}
    if kinds == {Kind.NUMERIC}:
        return then if then.digits[1] == now.digits[1] else now
    return then if kinds <= _INTEGERS or kinds <= _TEXTS else now
