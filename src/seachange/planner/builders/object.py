"""RENAME TO, SET SCHEMA and OWNER TO: what every kind of object has."""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.schema.temporary import is_temporary
from seachange.model.statements import ChangeOwner, MoveObject, RenameObject
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import ALWAYS, Kinds, find_object, refuse_taken
from seachange.planner.builders.schema import check_schema_name, is_taken
from seachange.planner.object_names import FoundObject

# ALTER TABLE takes other relations too.
_RELATIONS: dict[ObjectKind, Kinds] = {ObjectKind.TABLE: VIEWS | {ObjectKind.SEQUENCE}}


def rename_object(draft: Draft, statement: RenameObject) -> None:
    found = find_object(draft, statement.kind, statement.name, statement.if_exists)
    if found is not None:
        if found.kind is ObjectKind.INDEX and not draft.select(
            elements.IndexName, table_id=found.id, index_id=found.index_id
        ):
            # Another change is about to add it, or to drop it.
            raise errors.UndefinedTable(name=statement.name)
        rename(draft, found, statement.new_name)


def rename(draft: Draft, found: FoundObject, new_name: str) -> None:
    match found.kind:
        case ObjectKind.INDEX:
            _rename_index(draft, found, new_name)
        case ObjectKind.SCHEMA:
            _rename_schema(draft, found.id, new_name)
        case ObjectKind.DATABASE:
            _rename_database(draft, found.id, new_name)
        case kind:
            entry = draft.entry(found.id)
            refuse_taken(draft, kind, entry.schema, new_name)
            draft.replace(entry, replace(entry, name=new_name))


def _rename_index(draft: Draft, found: FoundObject, new_name: str) -> None:
    (old,) = draft.select(elements.IndexName, table_id=found.id, index_id=found.index_id)
    refuse_taken(draft, ObjectKind.INDEX, draft.schema_named(found.id), new_name)
    # The constraint of an index bears its name.
    is_constraint = bool(draft.select(elements.KeyConstraint, table_id=found.id, index_id=found.index_id))
    is_taken_there = bool(draft.select(elements.ConstraintName, table_id=found.id, name=new_name))
    if is_constraint and is_taken_there:
        raise errors.DuplicateObject(kind="constraint", name=new_name)
    draft.replace(old, replace(old, name=new_name))


def _rename_schema(draft: Draft, id_: DescriptorId, new_name: str) -> None:
    """Everything that is in it is found under the new name."""
    entry = draft.entry(id_)
    _refuse_standing(entry)
    check_schema_name(new_name)
    if is_taken(draft, ObjectKind.SCHEMA, new_name):
        raise errors.DuplicateSchema(name=new_name)
    inside = draft.directory.objects_in(entry.name)
    draft.replace(entry, replace(entry, name=new_name))
    for found in inside:
        moved = draft.entry(found.id)
        draft.replace(moved, replace(moved, schema=new_name))


def _rename_database(draft: Draft, id_: DescriptorId, new_name: str) -> None:
    entry = draft.entry(id_)
    if entry.name == draft.database:
        raise errors.FeatureNotSupported(
            feature="renaming the database of the session", instead="Connect to another database first."
        )
    _refuse_standing(entry)
    if is_taken(draft, ObjectKind.DATABASE, new_name):
        raise errors.DuplicateDatabase(name=new_name)
    draft.replace(entry, replace(entry, name=new_name))
    draft.load_all()
    for inside in entries_of(draft, entry.name):
        draft.replace(inside, replace(inside, database=new_name))


def entries_of(draft: Draft, database: str) -> list[elements.NamespaceElement]:
    """What is in a database, if all is loaded."""
    return draft.select(elements.NamespaceElement, database=database)


def _refuse_standing(entry: elements.NamespaceElement) -> None:
    if entry.name == ALWAYS[entry.kind]:
        raise errors.FeatureNotSupported(
            feature=f"renaming {entry.kind} {entry.name}", instead=f"Create another {entry.kind}, and use that."
        )


def move_object(draft: Draft, statement: MoveObject) -> None:
    accepts = _RELATIONS.get(statement.kind, frozenset())
    found = find_object(draft, statement.kind, statement.name, statement.if_exists, accepts)
    if found is None:
        return
    if not draft.has_schema(statement.schema):
        raise errors.InvalidSchemaName(name=statement.schema)
    if is_temporary(statement.schema) or is_temporary(draft.schema_named(found.id)):
        raise errors.FeatureNotSupported(
            feature="moving objects into or out of temporary schemas", instead="CREATE TABLE ... AS copies a table."
        )
    draft.load_connected(found.id)
    if found.kind is ObjectKind.SEQUENCE and draft.select(elements.SequenceOwnerElement, sequence_id=found.id):
        raise errors.FeatureNotSupported(
            feature=f"moving sequence {statement.name}, which a column owns,",
            instead="ALTER TABLE ... SET SCHEMA moves the table with its sequences.",
        )
    _move(draft, found.id, statement.schema)
    for owned in draft.select(elements.SequenceOwnerElement, table_id=found.id):
        _move(draft, owned.sequence_id, statement.schema)


def _move(draft: Draft, id_: DescriptorId, schema: str) -> None:
    entry = draft.entry(id_)
    if entry.schema == schema:
        return
    refuse_taken(draft, entry.kind, schema, entry.name)
    for index in draft.select(elements.IndexName, table_id=id_):
        refuse_taken(draft, ObjectKind.INDEX, schema, index.name)
    draft.replace(entry, replace(entry, schema=schema))


def change_owner(draft: Draft, statement: ChangeOwner) -> None:
    accepts = _RELATIONS.get(statement.kind, frozenset())
    found = find_object(draft, statement.kind, statement.name, statement.if_exists, accepts)
    if found is None:
        return
    _set_owner(draft, found.id, statement.role)
    if found.kind is ObjectKind.TABLE:
        draft.load_connected(found.id)
        for owned in draft.select(elements.SequenceOwnerElement, table_id=found.id):
            _set_owner(draft, owned.sequence_id, statement.role)


def _set_owner(draft: Draft, id_: DescriptorId, role: str) -> None:
    draft.replace(draft.only(elements.Owner, descriptor_id=id_), elements.Owner(id_, role))
