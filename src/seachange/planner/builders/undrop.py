"""UNDROP TABLE: a table comes back with its rows, which were kept.

**Invariant:** nothing comes back that would be wrong by now. What the table refers to may have gone or changed since.
"""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.statements import UndropTable
from seachange.model.states import State
from seachange.planner.builders.draft import Draft, at_rest
from seachange.planner.builders.lookup import refuse_taken
from seachange.planner.elements.registry import SPECS
from seachange.planner.graph import field_values
from seachange.planner.object_parts import decompose
from seachange.planner.object_users import referred_by


def undrop_table(draft: Draft, statement: UndropTable) -> None:
    schema = draft.schema_of(statement.table)
    table = _find_kept(draft, schema, statement)
    _refuse_lost_relation(draft, table)
    bring_back_table(draft, table)


def bring_back_table(draft: Draft, table: Table) -> None:
    schema = table.schema
    refuse_taken(draft, ObjectKind.TABLE, schema, table.name)
    draft.load_connected(*referred_by(table))
    draft.undropped.add(table.id)
    parts = decompose(at_rest(table))
    for element, state in parts.items():
        match element:
            case elements.IndexName(name=name):
                refuse_taken(draft, ObjectKind.INDEX, schema, name)
            case elements.ColumnType():
                _refuse_lost_type(draft, table, element)
            case _:
                pass
        if _is_whole(draft, table, element):
            _bring_back(draft, element, state)


def _find_kept(draft: Draft, schema: str, statement: UndropTable) -> Table:
    """The one of that name that was dropped last."""
    name = (draft.database, schema, statement.table.name)
    for table in reversed([kept for kept in draft.catalog.dropped if isinstance(kept, Table)]):
        is_back = table.id in draft.catalog.descriptors or elements.TableElement(table.id) in draft.targets
        if (table.database, table.schema, table.name) == name and not is_back:
            return table
    raise errors.UndefinedTable(name=f"{statement.table} (dropped)")


def _has_references(draft: Draft, element: Element) -> bool:
    """Whether the objects that it refers to are still there."""
    reference = SPECS[type(element)].refers
    if reference is None:
        return True
    return all(draft.select(reference.to, **{reference.by: id_}) for id_ in field_values(element, reference.field))


def _refuse_lost_type(draft: Draft, table: Table, type_: elements.ColumnType) -> None:
    if not _has_references(draft, type_):
        column = table.column_by_id[type_.column_id].name
        raise errors.FeatureNotSupported(
            feature=f"UNDROP TABLE {table.name}, the type of whose column {column} was dropped too,",
            instead="Create the table again.",
        )


def _refuse_lost_relation(draft: Draft, table: Table) -> None:
    """Of a materialized view: what its query reads is there, with the columns that it names."""
    if table.materialized is None:
        return
    draft.load_connected(*referred_by(table))
    is_there = all(draft.select(elements.Owner, descriptor_id=id_) for id_ in table.materialized.relation_ids)
    uses = table.materialized.column_uses
    if not is_there or not all(draft.select(elements.ColumnName, table_id=t, column_id=c) for t, c in uses):
        raise errors.FeatureNotSupported(
            feature=f"UNDROP TABLE {table.name}, a materialized view of what was dropped too,",
            instead="Bring back what it reads, then create it again.",
        )


def _is_whole(draft: Draft, table: Table, element: Element) -> bool:
    """Whether what the element needs is there; if not, a notice says what is left out."""
    match element:
        case elements.ColumnDefault() | elements.ColumnIdentity():
            is_there = _has_references(draft, element)
            if not is_there:
                column = table.column_by_id[ColumnId(element.column_id)].name
                draft.notices.append(
                    f'column "{column}" has no default any more: the sequence that it drew from was dropped'
                )
            return is_there
        case elements.ForeignKeyElement():
            is_there = _has_parent_key(draft, table, element)
            if not is_there:
                name = _name(table, element)
                draft.notices.append(f'foreign key "{name}" does not come back: the key that it refers to is gone')
            return is_there
        case elements.ConstraintName(constraint_id=id_):
            keys = [
                key
                for key in decompose(table)
                if isinstance(key, elements.ForeignKeyElement) and key.constraint_id == id_
            ]
            return all(_has_parent_key(draft, table, key) for key in keys)
        case _:
            return True


def _has_parent_key(draft: Draft, table: Table, key: elements.ForeignKeyElement) -> bool:
    if key.parent_id == table.id:
        return True
    place = {"table_id": key.parent_id, "index_id": key.parent_index_id}
    return bool(draft.select(elements.PrimaryIndex, **place) or draft.select(elements.UniqueIndex, **place))


def _name(table: Table, key: elements.ForeignKeyElement) -> str:
    return next(k.name for k in table.foreign_keys if k.id == key.constraint_id)


def _bring_back(draft: Draft, element: Element, state: State) -> None:
    goal = Goal.ENFORCED if state is State.ENFORCED else Goal.PUBLIC
    match element:
        case elements.PrimaryIndex() | elements.SecondaryIndex() | elements.UniqueIndex():
            draft.add(replace(element, built=True))
        case elements.ForeignKeyElement(table_id=table_id, parent_id=parent_id):
            if parent_id != table_id and goal is Goal.PUBLIC:
                # Parents could be deleted while there was no child.
                goal = Goal.ENFORCED
                draft.notices.append(
                    "a foreign key comes back as NOT VALID: ALTER TABLE ... VALIDATE CONSTRAINT looks at the rows"
                )
            draft.add(replace(element, not_valid=goal is Goal.ENFORCED), goal)
            draft.add(elements.ForeignKeyParent(parent_id, table_id, element.constraint_id), goal)
        case _:
            draft.add(element, goal)
