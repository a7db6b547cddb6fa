"""A new primary index beside the old one, for values that are in no file yet."""

from __future__ import annotations

from dataclasses import replace

from seachange.model.change import elements
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.planner.builders.draft import Draft
from seachange.planner.elements.index import index_element


def rebuild_primary(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    """Has the rows rewritten so that they hold this column. All rebuilds of a table are one; without rows, none is
    needed."""
    if draft.has_no_rows(table_id):
        return
    current = draft.primary(table_id)
    if current in draft.targets:
        draft.amend(current, replace(current, rebuilt_ids=(*current.rebuilt_ids, column_id)))
        return
    successor = elements.PrimaryIndex(
        table_id,
        IndexId(next(draft.ids)),
        current.key,
        current.descending,
        rebuilt_ids=(column_id,),
        replaces_id=current.index_id,
    )
    swap_index(draft, current, successor)


def forget_rebuild(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    """A column for which rows were to be rewritten goes before they are: without another, they stay as they are."""
    current = draft.primary(table_id)
    if column_id not in current.rebuilt_ids:
        return
    rest = tuple(id_ for id_ in current.rebuilt_ids if id_ != column_id)
    draft.amend(current, replace(current, rebuilt_ids=rest))
    table = draft.catalog.descriptors[table_id]
    assert isinstance(table, Table)
    before = index_element(table, table.primary)
    if not rest and (before.key, before.descending) == (current.key, current.descending):
        swap_index(draft, draft.primary(table_id), before)


def swap_index(draft: Draft, old: elements.AnyIndex, new: elements.AnyIndex) -> None:
    """The new index takes over the name of the old one, and what it means to the user."""
    name = draft.index_name(old).name
    is_constraint = bool(draft.select(elements.KeyConstraint, table_id=old.table_id, index_id=old.index_id))
    remove_index(draft, old)
    add_index(draft, new, name, is_constraint)
    move_comment(draft, old.table_id, (ObjectKind.INDEX, old.index_id), (ObjectKind.INDEX, new.index_id))
    repoint_foreign_keys(draft, old, new)


def remove_index(draft: Draft, index: elements.AnyIndex) -> None:
    """The index with its parts, as what refers to it is another's care."""
    place = {"table_id": index.table_id, "index_id": index.index_id}
    for constraint in draft.select(elements.KeyConstraint, **place):
        draft.drop(constraint)
    for name in draft.select(elements.IndexName, **place):
        draft.drop(name)
    draft.drop(index)
    for data in draft.select(elements.IndexData, **place):
        draft.drop(data)


def add_index(draft: Draft, index: elements.AnyIndex, name: str, constraint: bool) -> None:
    draft.add(index)
    draft.add(elements.IndexName(index.table_id, index.index_id, name))
    draft.add(elements.IndexData(index.table_id, index.index_id))
    if constraint:
        draft.add(elements.KeyConstraint(index.table_id, index.index_id))


def move_comment(draft: Draft, table_id: TableId, old: tuple[ObjectKind, int], new: tuple[ObjectKind, int]) -> None:
    """To the part that takes the place of another."""
    for comment in draft.select(elements.Comment, descriptor_id=table_id):
        if comment.part == old:
            draft.replace(comment, replace(comment, part=new))


def move_constraint(draft: Draft, old: elements.Constraint, new: elements.Constraint) -> Goal:
    """One that is not valid stays so."""
    goal = draft.goal(old)
    name = draft.only(elements.ConstraintName, table_id=old.table_id, constraint_id=old.constraint_id)
    assert name is not None
    draft.drop(name)
    draft.drop(old)
    draft.add(new, goal)
    kind = ObjectKind.CONSTRAINT
    move_comment(draft, old.table_id, (kind, old.constraint_id), (kind, new.constraint_id))
    draft.add(elements.ConstraintName(old.table_id, new.constraint_id, name.name))
    return goal


def repoint_foreign_keys(draft: Draft, old: elements.AnyIndex, new: elements.AnyIndex) -> None:
    """Foreign keys that look parents up in the old index look them up in the new one; the keys are the same."""
    draft.load_connected(old.table_id)
    for key in draft.select(elements.ForeignKeyElement, parent_id=old.table_id, parent_index_id=old.index_id):
        moved = replace(key, parent_index_id=new.index_id)
        goal = draft.goal(key)
        draft.drop(key)
        draft.add(moved, goal)
        draft.implied[moved] = "the keys that it refers to stay the same"
        # A child's writer who shares the key in the old index would not conflict with a delete of the parent
        # from the new one.
        draft.repointed.add(key.table_id)
