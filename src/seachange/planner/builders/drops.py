"""What goes together with what: indexes, constraints, columns, sequences and views, with all their parts."""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import AnyIndex
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.rebuild import forget_rebuild, remove_index
from seachange.planner.elements.registry import COLUMN_DROP_ORDER, DROP_ORDER, SPECS, TABLE_DROP_ORDER
from seachange.planner.graph import field_values


def drop_index(draft: Draft, index: AnyIndex, cascade: bool, what: str) -> None:
    """With CASCADE, the foreign keys that refer to it go too; `what` is what the user asked to drop."""
    note_references(draft, index, cascade, what)
    for key in draft.select(elements.ForeignKeyElement, parent_id=index.table_id, parent_index_id=index.index_id):
        drop_foreign_key(draft, key)
    drop_comments(draft, index.table_id, (ObjectKind.INDEX, index.index_id))
    remove_index(draft, index)
    drop_virtual_keys(draft, index)


def note_references(draft: Draft, index: AnyIndex, cascade: bool, what: str) -> None:
    draft.load_connected(index.table_id)
    for key in draft.select(elements.ForeignKeyElement, parent_id=index.table_id, parent_index_id=index.index_id):
        need_cascade(draft, cascade, what, constraint_label(draft, key))


def drop_virtual_keys(draft: Draft, index: AnyIndex) -> None:
    """The hidden columns that only this index has as keys."""
    kept = {column_id for other in draft.indexes(index.table_id) for column_id in other.key}
    for column_id in dict.fromkeys(c for c in index.key if c not in kept):
        generated = draft.only(elements.ColumnGenerated, table_id=index.table_id, column_id=column_id)
        if generated is not None and generated.virtual:
            drop_column_parts(draft, index.table_id, column_id)


def drop_check(draft: Draft, check: elements.CheckConstraint) -> None:
    _drop_constraint_name(draft, check)
    draft.drop(check)


def drop_foreign_key(draft: Draft, key: elements.ForeignKeyElement) -> None:
    _drop_constraint_name(draft, key)
    draft.drop(key)
    draft.drop(elements.ForeignKeyParent(key.parent_id, key.table_id, key.constraint_id))


def _drop_constraint_name(draft: Draft, constraint: elements.Constraint) -> None:
    drop_comments(draft, constraint.table_id, (ObjectKind.CONSTRAINT, constraint.constraint_id))
    for name in draft.select(
        elements.ConstraintName, table_id=constraint.table_id, constraint_id=constraint.constraint_id
    ):
        draft.drop(name)


def drop_comments(draft: Draft, id_: DescriptorId, part: tuple[ObjectKind, int]) -> None:
    for comment in draft.select(elements.Comment, descriptor_id=id_):
        if comment.part == part:
            draft.drop(comment)


def drop_column_parts(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    """A column that nothing depends on any more, with its name, type, default and the sequences that it owns."""
    place = {"table_id": table_id, "column_id": column_id}
    drop_comments(draft, table_id, (ObjectKind.COLUMN, column_id))
    drop_column_attributes(draft, table_id, column_id)
    forget_rebuild(draft, table_id, column_id)
    draft.drop(draft.column_element(table_id, column_id))
    draft.load_connected(table_id)
    for owner in draft.select(elements.SequenceOwnerElement, **place):
        drop_object(draft, owner.sequence_id)


def drop_column_attributes(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    for kind in COLUMN_DROP_ORDER:
        for part in draft.select(kind, table_id=table_id, column_id=column_id):
            draft.drop(part)


def drop_views(draft: Draft, views: list[elements.ViewQuery], cascade: bool, what: str) -> None:
    for view in views:
        need_cascade(draft, cascade, what, label_of(draft, view.view_id))
    for view in views:
        # It may have gone with another.
        if draft.select(elements.ViewQuery, view_id=view.view_id):
            own = label_of(draft, view.view_id)
            drop_views(draft, draft.select(elements.ViewQuery, relation_ids=view.view_id), cascade, own)
            if draft.select(elements.TableElement, table_id=view.view_id):
                drop_table(draft, TableId(view.view_id))
            else:
                drop_object(draft, view.view_id)


def drop_object(draft: Draft, id_: DescriptorId) -> None:
    """A database, schema, sequence, type or view, with everything that is a part of it."""
    draft.load(id_)
    for kind in DROP_ORDER:
        for part in draft.select(kind, descriptor_id=id_):
            draft.drop(part)


def drop_table(draft: Draft, table_id: TableId) -> None:
    """What refers to other objects goes piece by piece, the rest with the table itself."""
    for key in draft.select(elements.ForeignKeyElement, table_id=table_id):
        drop_foreign_key(draft, key)
    if draft.is_new(table_id):
        _forget(draft, table_id)
        return
    # What earlier statements of the transaction wanted of it is not needed any more.
    for target in [t for t in draft.targets.values() if t.adds and elements.descriptor_of(t.element) == table_id]:
        draft.cancel(target.element)
    for kind in TABLE_DROP_ORDER:
        for part in draft.select(kind, descriptor_id=table_id):
            if _is_known_outside(part):
                draft.drop(part)


def _is_known_outside(part: elements.Element) -> bool:
    """One that may refer to other objects is known there only if it does."""
    reference = SPECS[type(part)].refers
    return reference is None or any(field_values(part, reference.field))


def _forget(draft: Draft, table_id: TableId) -> None:
    """A table that this transaction created leaves nothing."""
    for element in [e for e in draft.targets if elements.descriptor_of(e) == table_id]:
        draft.drop(element)


def constraint_label(draft: Draft, key: elements.ForeignKeyElement) -> str:
    name = draft.only(elements.ConstraintName, table_id=key.table_id, constraint_id=key.constraint_id)
    return f"constraint {name.name if name else key.constraint_id} on {label_of(draft, key.table_id)}"


# Dependents that block a drop, or are dropped with it: all are reported together.
#
# **Invariant:** a statement that lacks CASCADE is looked at to its end, so that every dependent is known, and then
# refused; the draft is of no use any more.
def need_cascade(draft: Draft, cascade: bool, what: str, dependent: str) -> None:
    """`dependent` goes if `what` does."""
    draft.dependents.setdefault((dependent, what), cascade)


def check_dependents(draft: Draft) -> None:
    """At the end of a statement: 2BP01, or the notice of what went with the rest."""
    if not all(draft.dependents.values()):
        raise _refusal(list(draft.dependents))
    going = dict.fromkeys(dependent for dependent, _ in draft.dependents)
    if len(going) == 1:
        draft.notices.append(f"drop cascades to {next(iter(going))}")
    elif going:
        draft.notices.append(f"drop cascades to {len(going)} other objects: {', '.join(going)}")
    draft.dependents.clear()


def _refusal(dependents: list[tuple[str, str]]) -> errors.Error:
    below = {dependent for dependent, _ in dependents}
    asked_for = dict.fromkeys(what for _, what in dependents if what not in below)
    what = next(iter(asked_for)) if len(asked_for) == 1 else "desired object(s)"
    lines = "\n".join(f"{dependent} depends on {on}" for dependent, on in dependents)
    return errors.DependentObjectsExist(what=what, dependents=lines)


def label_of(draft: Draft, id_: DescriptorId) -> str:
    """As `table t`, with the schema where the name alone would not lead there."""
    entry = draft.entry(id_)
    if not entry.schema or entry.schema in draft.catalog.search_path:
        return f"{entry.kind} {entry.name}"
    return f"{entry.kind} {entry.schema}.{entry.name}"
