"""A table in the shape of an earlier version: the current table with the names, columns and types of then.

**Invariant:** it has all columns of the current table, by id: rows, keys, states and constraints are the same. A column
that the earlier version lacks is WRITE_ONLY: maintained, and never named. In addition it has the columns that have gone
since, as they were then: their values are computed (`engine/shapes/translation.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import State
from seachange.values.types import INTEGERS, Kind, SqlType

_TEXTS = frozenset({Kind.VARCHAR, Kind.TEXT})


@dataclass(frozen=True)
class PinnedTable(Table):
    """`now` is the current table. `unread` are columns that have gone of which the statement needs no values.
    `read_only` says what it is, if it may not be written."""

    now: Table | None = None
    unread: frozenset[ColumnId] = frozenset()
    read_only: str = ""


def costly_columns(now: Table, then: Table) -> frozenset[str]:
    """The names of columns whose values of now may have no counterpart then: reading them can fail."""
    known = ((column, now.column_by_id.get(column.id)) for column in then.visible_columns)
    return frozenset(
        column.name for column, own in known if own is None or _shown_type(column.type, own.type) != own.type
    )


def pin_table(now: Table, then: Table, unneeded: frozenset[str] = frozenset()) -> Table:
    """The table itself if its shape has not changed. Columns of names in `unneeded` have their types of now, and no
    value if they have gone."""
    retired = {
        column.id: _retired_column(column, now) for column in then.visible_columns if column.id in now.retired_by_id
    }
    columns = tuple(_pin_column(column, now, then, unneeded, retired) for column in now.columns)
    if not retired:
        if columns == now.columns and then.name == now.name:
            return now
        return pinned_with(now, columns=columns, name=then.name)
    shown = {column.id: column for column in columns} | retired
    order = [column.id for column in then.visible_columns if column.id in shown]
    order += [column.id for column in columns if column.id not in order]
    unread = frozenset(id_ for id_, column in retired.items() if column.name in unneeded)
    return pinned_with(now, unread, columns=tuple(shown[id_] for id_ in order), name=then.name)


def pin_read_only(now: Table, then: Table, text: str) -> Table:
    shown = pin_table(now, then)
    return replace(shown if isinstance(shown, PinnedTable) else pinned_with(now), read_only=text)


def pinned_with(now: Table, unread: Iterable[ColumnId] = (), /, **changes: Any) -> PinnedTable:
    """The current table with these differences."""
    kept = {field.name: getattr(now, field.name) for field in fields(Table)}
    return PinnedTable(**{**kept, **changes}, now=now, unread=frozenset(unread))


def table_now(table: Table) -> Table:
    return table.now if isinstance(table, PinnedTable) and table.now is not None else table


def _retired_column(known: Column, now: Table) -> Column:
    """As it was, but for what a row need not have any more, and sequences that may have gone with it."""
    is_drawn = known.identity is not None or bool(known.default_sequences)
    last = now.retired_by_id[known.id].column
    return replace(
        known,
        type=_shown_type(known.type, last.type),
        nullable=True,
        default=None if is_drawn else known.default,
        default_sequences=(),
        identity=None,
    )


def _pin_column(
    column: Column, now: Table, then: Table, unneeded: frozenset[str], retired: dict[ColumnId, Column]
) -> Column:
    if column not in now.visible_columns:
        return column
    known = then.column_by_id.get(column.id)
    if known is not None and known in then.visible_columns:
        type_ = column.type if known.name in unneeded else _shown_type(known.type, column.type)
        return replace(column, name=known.name, type=type_)
    replaced = then.column_by_name.get(column.name)
    is_shown = (replaced is None or replaced.id not in retired) and has_taken_place(column, now, then)
    return column if is_shown else hide_column(column)


def hide_column(column: Column) -> Column:
    """A value that UP computes is there only once a row is one of now."""
    return replace(column, state=State.WRITE_ONLY, nullable=column.nullable or column.from_earlier is not None)


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
    return then if kinds <= INTEGERS or kinds <= _TEXTS else now
