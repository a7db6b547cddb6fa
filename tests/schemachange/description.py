"""A table's descriptor as lines of text, one for each part: what a change has done, beside what it should do."""

import re
from collections.abc import Iterator
from dataclasses import replace

from seachange.model.ids import ColumnId, ConstraintId, IndexId, LayoutId
from seachange.model.schema.constraint import Action
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.states import State


def describe(table: Table | None) -> list[str]:
    return [] if table is None else list(_lines(table))


def difference(before: Table | None, after: Table | None) -> str:
    """What is gone, then what has come."""
    old, new = describe(before), describe(after)
    gone = [f"- {line}" for line in old if line not in new]
    return "\n".join([*gone, *(f"+ {line}" for line in new if line not in old)])


def settled(table: Table | None, in_two: bool = False) -> Table | None:
    """A descriptor without what a rolled-back change may leave: versions, layouts, used ids. One `in_two` parts may
    leave the rows in another index, and a record of a column that was public in between."""
    if table is None:
        return None
    return replace(
        table,
        primary=replace(table.primary, id=IndexId(0)) if in_two else table.primary,
        version=0,
        layouts=(replace(table.layout, id=LayoutId(0)),),
        next_column_id=ColumnId(0),
        next_constraint_id=ConstraintId(0),
        retired=() if in_two else table.retired,
    )


def _lines(table: Table) -> Iterator[str]:
    yield f"table {table.name}"
    for column in table.columns:
        yield _column(column)
    for index in (*table.indexes, *((table.next_primary,) if table.next_primary is not None else ())):
        yield _index(table, index)
    for check in table.checks:
        yield f"check {check.name}: {_named(table, check.expression)}{_state(check.state)}"
    for key in table.foreign_keys:
        names = ", ".join(table.column_by_id[c].name for c in key.columns)
        actions = [
            f" on {event} {action.value.lower()}"
            for event, action in (("delete", key.on_delete), ("update", key.on_update))
            if action is not Action.NO_ACTION
        ]
        yield f"foreign key {key.name} ({names}){''.join(actions)}{_state(key.state)}"


def _column(column: Column) -> str:
    parts = [f"column {column.name} {column.type}"]
    if not column.nullable:
        parts.append(f"not null{_state(column.not_null)}")
    if column.default is not None:
        parts.append(f"default {re.sub(r'.*nextval.*', 'nextval', column.default)}")
    if column.frozen is not None:
        is_moment = column.default is not None and "NOW()" in column.default
        parts.append(f"reads as {'one moment' if is_moment else column.frozen}")
    if column.generated is not None:
        parts.append("virtual" if column.virtual else "generated")
    if column.conversion is not None:
        parts.append("converted")
    if column.hidden:
        parts.append("hidden")
    return " ".join(parts) + _state(column.state)


def _index(table: Table, index: Index) -> str:
    if index.id == table.primary.id:
        kind = "primary"
    elif table.holds_rows(index):
        kind = "next primary"
    else:
        kind = "unique index" if index.unique else "index"
    keys = [table.column_by_id[c].name + index.order_of(c).lower() for c in index.key if c in table.column_by_id]
    parts = [f"{kind} {index.name} ({', '.join(keys)})"]
    if index.include:
        parts.append(f"include ({', '.join(table.column_by_id[c].name for c in index.include)})")
    if index.where is not None:
        parts.append("partial")
    if not index.nulls_distinct:
        parts.append("nulls not distinct")
    if index.constraint and kind != "primary":
        parts.append("constraint")
    return " ".join(parts) + _state(index.state)


def _named(table: Table, expression: str) -> str:
    return re.sub(r'"c(\d+)"', lambda found: table.column_by_id[ColumnId(int(found[1]))].name, expression)


def _state(state: State) -> str:
    return "" if state is State.PUBLIC else f" {state.value}"
