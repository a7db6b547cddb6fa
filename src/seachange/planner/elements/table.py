"""Tables: columns, indexes and constraints under one name.

**Invariant:** a table that is taken apart and put together is the table, one version later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.ids import ColumnId, LayoutId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Column, Layout, RetiredColumn, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.materialized import MaterializedQuery
from seachange.model.states import State
from seachange.planner.elements.column import COLUMN_KINDS, put_columns, take_columns
from seachange.planner.elements.constraint import put_constraints, take_constraints
from seachange.planner.elements.index import put_indexes, take_indexes
from seachange.planner.elements.rule import CONSTRAINTS, INDEXES, Adding, Dropping, Moment, Rule, RuleOrder
from seachange.planner.elements.spec import (
    ElementNaming,
    ElementSpec,
    Host,
    ObjectForm,
    Parts,
    Topic,
    common_fields,
    copy_fields,
    only,
)
from seachange.planner.lifecycles.seachange import SIMPLE


def _take(table: Table) -> Parts:
    parameters: Parts = {elements.TableParameter(table.id, *each): State.PUBLIC for each in table.parameters}
    downs: Parts = {
        elements.ColumnDown(table.id, each.column.id, each.down): State.PUBLIC
        for each in table.retired
        if each.down is not None
    }
    parts = take_columns(table) | take_indexes(table) | take_constraints(table) | parameters | downs
    return parts | _take_query(table)


def _take_query(table: Table) -> Parts:
    found = table.materialized
    if found is None:
        return {}
    rows = elements.ViewRows(table.id, found.populated)
    return {copy_fields(found, elements.ViewQuery, view_id=table.id): State.PUBLIC, rows: State.PUBLIC}


def _put_query(parts: Mapping[Element, State]) -> MaterializedQuery | None:
    query = next((part for part in parts if isinstance(part, elements.ViewQuery)), None)
    if query is None:
        return None
    rows = only(elements.ViewRows, parts)
    return MaterializedQuery(**common_fields(query, MaterializedQuery), populated=rows.populated)


def _put(before: Table | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    columns = put_columns(before, [part for part in parts.items() if type(part[0]) in COLUMN_KINDS])
    others = {element: state for element, state in parts.items() if type(element) not in COLUMN_KINDS}
    primary, coming, secondary = put_indexes(before, others)
    checks, foreign_keys = put_constraints(others)
    used_columns = [c.id + 1 for c in columns]
    used_constraints = [*(c.id + 1 for c in checks), *(k.id + 1 for k in foreign_keys)]
    return {
        "columns": columns,
        "primary": primary,
        "secondary": secondary,
        "layouts": _layouts(before, columns),
        "next_column_id": max(*used_columns, before.next_column_id if before is not None else 0),
        "checks": checks,
        "foreign_keys": foreign_keys,
        "next_constraint_id": max(*used_constraints, before.next_constraint_id if before is not None else 1, 0),
        "next_primary": coming[0] if coming else None,
        "later_primaries": tuple(coming[1:]),
        "parameters": tuple(sorted((e.name, e.value) for e in others if isinstance(e, elements.TableParameter))),
        "retired": _retired(before, columns, others),
        "materialized": _put_query(others),
    }


def _retired(
    before: Table | None, columns: tuple[Column, ...], parts: Mapping[Element, State]
) -> tuple[RetiredColumn, ...]:
    """The columns that others could name, and that are gone. The labels of an enum type are not kept as they were."""
    if before is None:
        return ()
    left = {column.id for column in columns if column.state is State.PUBLIC}
    gone = [column for column in before.visible_columns if column.id not in left and not column.type.enum]
    new = left.difference(column.id for column in before.visible_columns)
    is_back = any(id_ < before.next_column_id and id_ in before.retired_by_id for id_ in new)
    downs = {e.column_id: e.expression for e in parts if isinstance(e, elements.ColumnDown)}
    if not gone and not is_back and downs == {each.column.id: each.down for each in before.retired if each.down}:
        return before.retired
    kept = (each for each in before.retired if each.column.id not in left)
    # Each that has not changed is the same object: what is known of it is known by that.
    same = (each if each.down == downs.get(each.column.id) else _retire(each.column, downs) for each in kept)
    return (*same, *(_retire(column, downs) for column in gone))


def _retire(column: Column, downs: Mapping[ColumnId, Expression]) -> RetiredColumn:
    return RetiredColumn(column, downs.get(column.id))


def _layouts(before: Table | None, columns: tuple[Column, ...]) -> tuple[Layout, ...]:
    """Columns that come or change in one version share one new layout. A virtual column is stored in no row."""
    shape = tuple((c.id, c.type) for c in columns if not c.virtual)
    if before is None:
        return (Layout(LayoutId(1), shape),)
    if shape == before.layout.columns:
        return before.layouts
    return (*before.layouts, Layout(LayoutId(before.layout.id + 1), shape))


TABLE = Topic(
    specs=(
        ElementSpec(
            elements.TableParameter,
            SIMPLE,
            "storage parameter of table",
            host=Host((elements.TableElement,), ("table_id",)),
            since=2,
        ),
        ElementSpec(
            elements.TableElement,
            SIMPLE,
            "table",
            ElementNaming.OWN,
            known_outside=True,
            form=ObjectForm(ObjectKind.TABLE, Table, _take, _put),
        ),
    ),
    rules=(
        Rule(
            name="a table exists before its parts",
            reason="a part is a part of a descriptor",
            first=Adding((elements.TableElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnElement, elements.TableParameter, *INDEXES, *CONSTRAINTS), Moment.FIRST),
            join=("table_id",),
        ),
        Rule(
            name="a parent table exists before a child refers to it",
            reason="a reference to nothing is not valid in any version",
            first=Adding((elements.TableElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ForeignKeyElement,), Status.WRITE_ONLY),
            join=(("table_id", "parent_id"),),
        ),
        Rule(
            name="a foreign key goes with the table that it refers to",
            reason="a reference to nothing is not valid in any version",
            first=Dropping((elements.ForeignKeyElement,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.TableElement,)),
            join=(("parent_id", "table_id"),),
        ),
        Rule(
            name="a foreign key goes with its table",
            reason="the table referred to must no longer check for rows that are gone",
            first=Dropping((elements.ForeignKeyElement,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.TableElement,)),
            join=("table_id",),
        ),
    ),
)
