"""DROP of whole objects, one or many, with what depends on them.

**Invariant:** what goes is known before anything goes. Objects of one statement do not stand in each other's way; what
depends on them from outside goes with CASCADE, and without it nothing goes.
"""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId, TableId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import DropColumn, DropObjects, DropTable
from seachange.planner.builders.column import drop_column
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import (
    constraint_label,
    drop_foreign_key,
    drop_object,
    drop_table,
    label_of,
    need_cascade,
)
from seachange.planner.builders.enum_type import columns_of_type
from seachange.planner.builders.lookup import ALWAYS, find_object

# What goes, each with what the user calls it.
Going = dict[DescriptorId, str]
_ROW_TYPES = VIEWS | {ObjectKind.TABLE}


def drop_tables(draft: Draft, statement: DropTable) -> None:
    _drop(draft, _named(draft, ObjectKind.TABLE, statement.tables, statement.if_exists), statement.cascade)


def drop_objects(draft: Draft, statement: DropObjects) -> None:
    named = _named(draft, statement.kind, statement.names, statement.if_exists)
    match statement.kind:
        case ObjectKind.SCHEMA:
            _drop_schemas(draft, named, statement.cascade)
        case ObjectKind.DATABASE:
            _drop_databases(draft, named)
        case _:
            _drop(draft, named, statement.cascade)


def _named(draft: Draft, kind: ObjectKind, names: tuple[RelationName, ...], if_exists: bool) -> Going:
    accepts = _ROW_TYPES if kind is ObjectKind.TYPE else frozenset()
    found = [(find_object(draft, kind, name, if_exists, accepts), name) for name in names]
    for each, name in found:
        if each is not None and each.kind in accepts:
            raise errors.RequiredObject(what=f"type {name}", owner=f"{each.kind} {name}")
    return {each.id: f"{kind} {name}" for each, name in found if each is not None}


def _drop_schemas(draft: Draft, schemas: Going, cascade: bool) -> None:
    going: Going = {}
    for id_, what in schemas.items():
        name = draft.name_of(id_)
        if name == ALWAYS[ObjectKind.SCHEMA]:
            raise errors.FeatureNotSupported(feature=f"dropping {what}", instead="Drop what is in it.")
        for found in draft.directory.objects_in(name):
            going[found.id] = label_of(draft, found.id)
            if not draft.select(elements.SequenceOwnerElement, sequence_id=found.id):
                need_cascade(draft, cascade, what, going[found.id])
    _drop(draft, going, cascade)
    for id_ in schemas:
        drop_object(draft, id_)


def _drop_databases(draft: Draft, databases: Going) -> None:
    """With all that is in them: nothing outside can depend on it."""
    draft.load_all()
    for id_, what in databases.items():
        name = draft.name_of(id_)
        if name == draft.database:
            raise errors.ObjectInUse(detail=f"cannot drop {what}: it is the database of the session")
        if name == ALWAYS[ObjectKind.DATABASE]:
            raise errors.FeatureNotSupported(feature=f"dropping {what}", instead="Drop what is in it.")
        entries = draft.select(elements.NamespaceElement, database=name)
        inside = {e.descriptor_id: f"{e.kind} {e.name}" for e in entries if e.kind is not ObjectKind.SCHEMA}
        _drop(draft, inside, cascade=True)
        # Its contents do not matter.
        draft.dependents.clear()
        for entry in entries:
            if entry.kind is ObjectKind.SCHEMA:
                drop_object(draft, entry.descriptor_id)
        drop_object(draft, id_)


def _drop(draft: Draft, named: Going, cascade: bool) -> None:
    """Tables, views, sequences and types."""
    draft.load_connected(*named)
    going = _close(draft, named, cascade)
    kinds = {id_: draft.entry(id_).kind for id_ in going}
    for id_, what in going.items():
        for release in _RELEASES[kinds[id_]]:
            release(draft, id_, what, going, cascade)
    for id_ in going:
        if draft.select(elements.TableElement, table_id=id_):
            drop_table(draft, id_)
        else:
            # It may have gone with a column.
            drop_object(draft, id_)


def _close(draft: Draft, named: Going, cascade: bool) -> Going:
    """With the views of what goes, and the sequences that columns of tables own."""
    going = dict(named)
    pending = list(named)
    while pending:
        id_ = pending.pop(0)
        owned = [owner.sequence_id for owner in draft.select(elements.SequenceOwnerElement, table_id=id_)]
        views = [view.view_id for view in draft.select(elements.ViewQuery, relation_ids=id_)]
        for view_id in views:
            if view_id not in named:
                need_cascade(draft, cascade, going[id_], label_of(draft, view_id))
        for other in (*owned, *views):
            if other not in going:
                going[other] = label_of(draft, other)
                pending.append(other)
    return going


def _release_parent(draft: Draft, id_: TableId, what: str, going: Going, cascade: bool) -> None:
    for key in draft.select(elements.ForeignKeyElement, parent_id=id_):
        if key.table_id not in going:
            need_cascade(draft, cascade, what, constraint_label(draft, key))
        drop_foreign_key(draft, key)


def _release_identities(draft: Draft, id_: DescriptorId, what: str, going: Going, cascade: bool) -> None:
    for identity in draft.select(elements.ColumnIdentity, sequence_id=id_):
        if identity.table_id not in going:
            column = draft.column_name(identity.table_id, identity.column_id)
            raise errors.RequiredObject(what=what, owner=f"column {column} of {label_of(draft, identity.table_id)}")


def _release_defaults(draft: Draft, id_: DescriptorId, what: str, going: Going, cascade: bool) -> None:
    for default in draft.select(elements.ColumnDefault, sequence_ids=id_):
        if default.table_id not in going:
            column = draft.column_name(default.table_id, default.column_id)
            dependent = f"default value for column {column} of {label_of(draft, default.table_id)}"
            need_cascade(draft, cascade, what, dependent)
            draft.drop(default)


def _release_columns(draft: Draft, id_: DescriptorId, what: str, going: Going, cascade: bool) -> None:
    for table_id, column_id in columns_of_type(draft, id_):
        if table_id not in going:
            column = draft.column_name(table_id, column_id)
            need_cascade(draft, cascade, what, f"column {column} of {label_of(draft, table_id)}")
            drop_column(draft, table_id, DropColumn(column, cascade=True))


# What has to go, or stands in the way, from outside.
_RELEASES = {
    ObjectKind.TABLE: (_release_parent,),
    ObjectKind.VIEW: (),
    ObjectKind.MATERIALIZED_VIEW: (),
    ObjectKind.SEQUENCE: (_release_identities, _release_defaults),
    ObjectKind.TYPE: (_release_columns,),
}
