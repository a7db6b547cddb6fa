"""A table taken apart into elements, and put together again.

**Invariant:** `compose_table(table, decompose_table(table))` is the table, one version later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.ids import ColumnId, ConstraintId, IndexId, LayoutId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Identity, Index, Layout, Table
from seachange.model.states import State
from seachange.planner.access_parts import compose_access, decompose_access
from seachange.values.types import Kind, SqlType

Parts = dict[Element, State]

# Of a column whose type has not been read yet.
_NO_TYPE = SqlType(Kind.TEXT)


def decompose_table(table: Table) -> Parts:
    parts: Parts = {
        elements.TableElement(table.id): State.PUBLIC,
        elements.NamespaceElement(table.id, ObjectKind.TABLE, table.database, table.schema, table.name): State.PUBLIC,
    }
    parts |= decompose_access(table.id, table.access)
    for column in table.columns:
        parts |= _decompose_column(table.id, column)
    for index in table.indexes:
        parts |= _decompose_index(table, index)
    if table.next_primary is not None:
        parts |= _decompose_index(table, table.next_primary)
    for check in table.checks:
        parts[elements.CheckConstraint(table.id, check.id, check.expression, check.columns, check.not_valid)] = (
            check.state
        )
        parts[elements.ConstraintName(table.id, check.id, check.name)] = State.PUBLIC
    for key in table.foreign_keys:
        parts[foreign_key_element(table.id, key)] = key.state
        parts[elements.ConstraintName(table.id, key.id, key.name)] = State.PUBLIC
    return parts


def _decompose_column(table_id: TableId, column: Column) -> Parts:
    id_ = column.id
    parts: Parts = {}
    if column.conversion is None:
        parts[elements.ColumnElement(table_id, id_, column.hidden, column.frozen, origin=column.origin)] = column.state
    else:
        parts[elements.ConvertedColumn(table_id, id_, column.conversion)] = column.state
    parts[elements.ColumnName(table_id, id_, column.name)] = State.PUBLIC
    parts[elements.ColumnType(table_id, id_, column.type)] = State.PUBLIC
    if column.default is not None:
        parts[elements.ColumnDefault(table_id, id_, column.default, column.default_sequences)] = State.PUBLIC
    if not column.nullable:
        parts[elements.ColumnNotNull(table_id, id_)] = column.not_null
    if column.generated is not None:
        parts[elements.ColumnGenerated(table_id, id_, column.generated, column.virtual)] = State.PUBLIC
    if column.identity is not None:
        identity = column.identity
        parts[elements.ColumnIdentity(table_id, id_, identity.sequence_id, identity.always)] = State.PUBLIC
    return parts


def index_element(table: Table, index: Index) -> elements.AnyIndex:
    if index.id == table.primary.id or index == table.next_primary:
        return elements.PrimaryIndex(table.id, index.id, index.key, index.descending)
    if index.unique:
        return elements.UniqueIndex(
            table.id,
            index.id,
            index.key,
            index.include,
            index.descending,
            index.where,
            index.nulls_distinct,
            index.nulls_swapped,
            source_id=index.source,
        )
    return elements.SecondaryIndex(
        table.id,
        index.id,
        index.key,
        index.include,
        index.descending,
        index.where,
        index.nulls_swapped,
        source_id=index.source,
    )


def _decompose_index(table: Table, index: Index) -> Parts:
    parts: Parts = {index_element(table, index): index.state}
    parts[elements.IndexName(table.id, index.id, index.name)] = State.PUBLIC
    parts[elements.IndexData(table.id, index.id)] = State.PUBLIC
    if index.constraint:
        parts[elements.KeyConstraint(table.id, index.id)] = State.PUBLIC
    return parts


def foreign_key_element(table_id: TableId, key: ForeignKey) -> elements.ForeignKeyElement:
    return elements.ForeignKeyElement(
        table_id,
        key.id,
        key.columns,
        key.parent,
        key.parent_index,
        key.on_delete,
        key.on_update,
        key.deferrable,
        key.initially_deferred,
        key.match_full,
        key.not_valid,
    )


# Together again.


def compose_table(before: Table | None, parts: Mapping[Element, State]) -> Table | None:
    """The next version of the table; None if it is gone."""
    by_kind: dict[type[Element], list[Element]] = {}
    for element in parts:
        by_kind.setdefault(type(element), []).append(element)
    tables = by_kind.get(elements.TableElement)
    if not tables:
        return None
    (table,) = tables
    (namespace,) = by_kind[elements.NamespaceElement]
    assert isinstance(table, elements.TableElement)
    assert isinstance(namespace, elements.NamespaceElement)
    columns = _order(before, parts, _compose_columns(parts))
    primary, next_primary, secondary = _compose_indexes(before, parts)
    checks, foreign_keys = _compose_constraints(before, parts)
    used = [*(c.id for c in checks), *(k.id for k in foreign_keys), 0]
    return Table(
        id=table.table_id,
        version=before.version + 1 if before is not None else 1,
        schema=namespace.schema,
        name=namespace.name,
        columns=columns,
        primary=primary,
        secondary=secondary,
        layouts=_layouts(before, columns),
        next_column_id=ColumnId(max(c.id for c in columns) + 1)
        if before is None
        else ColumnId(max(before.next_column_id, *(c.id + 1 for c in columns))),
        database=namespace.database,
        checks=checks,
        foreign_keys=foreign_keys,
        next_constraint_id=ConstraintId(max(max(used) + 1, before.next_constraint_id if before is not None else 1)),
        next_primary=next_primary,
        access=compose_access(parts),
    )


def _layouts(before: Table | None, columns: tuple[Column, ...]) -> tuple[Layout, ...]:
    """Columns that come or change in one version share one new layout. A virtual column is stored in no row."""
    shape = tuple((c.id, c.type) for c in columns if not c.virtual)
    if before is None:
        return (Layout(LayoutId(1), shape),)
    if shape == before.layout.columns:
        return before.layouts
    return (*before.layouts, Layout(LayoutId(before.layout.id + 1), shape))


def _compose_columns(parts: Mapping[Element, State]) -> dict[ColumnId, Column]:
    columns: dict[ColumnId, Column] = {}
    for element, state in parts.items():
        match element:
            case elements.ColumnElement():
                columns[element.column_id] = Column(
                    element.column_id,
                    "",
                    _NO_TYPE,
                    frozen=element.frozen,
                    hidden=element.hidden,
                    state=state,
                    origin=element.origin,
                )
            case elements.ConvertedColumn():
                # Once it is public, its values are its own.
                conversion = element.conversion if state is not State.PUBLIC else None
                columns[element.column_id] = Column(element.column_id, "", _NO_TYPE, state=state, conversion=conversion)
            case _:
                pass
    for element, state in parts.items():
        match element:
            case elements.ColumnName():
                changes: dict[str, object] = {"name": element.name}
            case elements.ColumnType():
                changes = {"type": element.type}
            case elements.ColumnDefault():
                changes = {"default": element.expression, "default_sequences": element.sequence_ids}
            case elements.ColumnNotNull():
                changes = {"nullable": False, "not_null": state}
            case elements.ColumnGenerated():
                changes = {"generated": element.expression, "virtual": element.virtual}
            case elements.ColumnIdentity():
                changes = {"identity": Identity(element.sequence_id, element.always)}
            case _:
                continue
        columns[element.column_id] = replace(columns[element.column_id], **changes)  # type: ignore[arg-type]
    return columns


def _order(before: Table | None, parts: Mapping[Element, State], columns: dict[ColumnId, Column]) -> tuple[Column, ...]:
    """Columns keep their places; a new one stands last, or where the one stood whose place it takes."""
    after: dict[ColumnId, ColumnId] = {}
    for element in parts:
        if isinstance(element, elements.ColumnElement | elements.ConvertedColumn) and element.in_place_of is not None:
            after[element.in_place_of] = element.column_id
    known = [c.id for c in before.columns] if before is not None else []
    order: list[ColumnId] = []
    for id_ in known:
        order.append(id_)
        if id_ in after and after[id_] not in known:
            order.append(after[id_])
    seen = set(order)
    order += [id_ for id_ in columns if id_ not in seen]
    return tuple(columns[id_] for id_ in order if id_ in columns)


def _compose_indexes(
    before: Table | None, parts: Mapping[Element, State]
) -> tuple[Index, Index | None, tuple[Index, ...]]:
    names: dict[IndexId, str] = {}
    constraints: set[IndexId] = set()
    for element in parts:
        if isinstance(element, elements.IndexName):
            names[element.index_id] = element.name
        elif isinstance(element, elements.KeyConstraint):
            constraints.add(element.index_id)
    primaries: list[Index] = []
    secondary: dict[IndexId, Index] = {}
    for element, state in parts.items():
        match element:
            case elements.PrimaryIndex(index_id=id_):
                primaries.append(
                    Index(
                        id_,
                        names[id_],
                        element.key,
                        unique=True,
                        state=state,
                        descending=element.descending,
                        constraint=id_ in constraints,
                    )
                )
            case elements.SecondaryIndex(index_id=id_) | elements.UniqueIndex(index_id=id_):
                secondary[id_] = Index(
                    id_,
                    names[id_],
                    element.key,
                    isinstance(element, elements.UniqueIndex),
                    element.include,
                    state,
                    element.descending,
                    element.where,
                    element.nulls_distinct if isinstance(element, elements.UniqueIndex) else True,
                    id_ in constraints,
                    # Once it is public, so is the index that it was made from.
                    element.source_id if state is not State.PUBLIC else None,
                    element.nulls_swapped,
                )
            case _:
                pass
    public = next(p for p in primaries if p.state is State.PUBLIC or len(primaries) == 1)
    building = next((p for p in primaries if p is not public), None)
    known = [i.id for i in before.secondary if i.id in secondary] if before is not None else []
    order = dict.fromkeys([*known, *secondary])
    return public, building, tuple(secondary[id_] for id_ in order)


def _compose_constraints(
    before: Table | None, parts: Mapping[Element, State]
) -> tuple[tuple[Check, ...], tuple[ForeignKey, ...]]:
    names = {e.constraint_id: e.name for e in parts if isinstance(e, elements.ConstraintName)}
    checks: list[Check] = []
    keys: list[ForeignKey] = []
    for element, state in parts.items():
        match element:
            case elements.CheckConstraint(constraint_id=id_):
                checks.append(Check(id_, names[id_], element.expression, element.column_ids, state, element.not_valid))
            case elements.ForeignKeyElement(constraint_id=id_):
                keys.append(
                    ForeignKey(
                        id_,
                        names[id_],
                        element.column_ids,
                        element.parent_id,
                        element.parent_index_id,
                        element.on_delete,
                        element.on_update,
                        element.deferrable,
                        element.initially_deferred,
                        state,
                        element.match_full,
                        element.not_valid,
                    )
                )
            case _:
                pass
    return tuple(checks), tuple(keys)
